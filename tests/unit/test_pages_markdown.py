"""Markdown of lessons as elements of a page."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.pages.markdown import inline, nodes


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("## 1. Predict", [["h3", {}, "1. Predict"]]),
        ("one\ntwo\n\nthree", [["p", {}, "one\ntwo"], ["p", {}, "three"]]),
        ("- a\n- b\n  more", [["ul", {}, ["li", {}, "a"], ["li", {}, "b\nmore"]]]),
        ("text:\n2. a\n3. b", [["p", {}, "text:"], ["ol", {"start": "2"}, ["li", {}, "a"], ["li", {}, "b"]]]),
        ("```\na  *b*\n\n# c\n```\nd", [["pre", {}, "a  *b*\n\n# c"], ["p", {}, "d"]]),
        (
            "| a | b |\n|---|--:|\n| `1` | 2 |",
            [
                [
                    "table",
                    {},
                    ["tr", {}, ["th", {}, "a"], ["th", {}, "b"]],
                    ["tr", {}, ["td", {}, ["code", {}, "1"]], ["td", {}, "2"]],
                ]
            ],
        ),
        ("<!-- not\nseen -->", []),
    ],
)
def test_blocks(text: str, made: list[Any]) -> None:
    assert nodes(text) == made


def test_inside_of_a_line() -> None:
    link = ["a", {"href": "https://x.org/a", "target": "_blank", "rel": "noopener"}, "there"]
    assert inline("**b** *i* `c*d*` [there](https://x.org/a) [here](../docs/a.md)") == [
        *(["b", {}, "b"], " ", ["i", {}, "i"], " ", ["code", {}, "c*d*"], " "),
        *(link, " ", ["span", {}, "here"]),
    ]


@given(st.text(alphabet="ab`*[]()<>#|-1. \n:/", max_size=80))
def test_no_text_is_lost_in_a_loop_and_no_tag_comes_from_it(text: str) -> None:
    known = {
        "p",
        "ul",
        "ol",
        "li",
        "pre",
        "code",
        "b",
        "i",
        "a",
        "span",
        "table",
        "tr",
        "th",
        "td",
        "h2",
        "h3",
        "h4",
        "h5",
    }
    waiting = nodes(text)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, str):
            assert node[0] in known
            waiting += node[2:]


@given(st.sampled_from(["javascript:alert", "data:text/html,x", "//evil", "file:///etc"]))
def test_only_addresses_of_the_web_become_links(target: str) -> None:
    assert inline(f"[a]({target})") == [["span", {}, "a"]]
