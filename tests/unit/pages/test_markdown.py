"""Markdown of lessons as elements of a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.pages.markdown import Node, nodes

_KNOWN = (
    *("p", "ul", "ol", "li", "pre", "code", "strong", "em", "a", "span", "br", "hr", "blockquote"),
    *("table", "thead", "tbody", "tr", "th", "td", "h2", "h3", "h4", "h5", "h6"),
)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("## 1. Predict", [["h3", {}, "1. Predict"]]),
        ("###### deepest", [["h6", {}, "deepest"]]),
        ("one\ntwo\n\nthree", [["p", {}, "one\ntwo"], ["p", {}, "three"]]),
        ("- a\n- b\n  more", [["ul", {}, ["li", {}, "a"], ["li", {}, "b\nmore"]]]),
        ("- a\n  - b", [["ul", {}, ["li", {}, "a", ["ul", {}, ["li", {}, "b"]]]]]),
        ("2. a\n3. b", [["ol", {"start": 2}, ["li", {}, "a"], ["li", {}, "b"]]]),
        ("```\na  *b*\n\n# c\n```\nd", [["pre", {}, "a  *b*\n\n# c"], ["p", {}, "d"]]),
        (
            "| a | b |\n|---|--:|\n| `1` | 2 |",
            [
                [
                    "table",
                    {},
                    ["thead", {}, ["tr", {}, ["th", {}, "a"], ["th", {}, "b"]]],
                    ["tbody", {}, ["tr", {}, ["td", {}, ["code", {}, "1"]], ["td", {}, "2"]]],
                ]
            ],
        ),
        ("<!-- not\nseen -->", []),
        ("<b onclick=x>a</b>", [["p", {}, "<b onclick=x>a</b>"]]),
        ("![a *picture*](a.png)", [["p", {}, "a *picture*"]]),
    ],
)
def test_blocks(text: str, made: list[Any]) -> None:
    assert nodes(text) == made


def inline(text: str) -> list[Any]:
    (paragraph,) = nodes(text)
    return list(paragraph[2:])


def test_inside_of_a_line() -> None:
    link = ["a", {"href": "https://x.org/a", "target": "_blank", "rel": "noopener"}, "there"]
    assert inline("**b** *i* `c*d*` [there](https://x.org/a) [here](../docs/a.md)") == [
        *(["strong", {}, "b"], " ", ["em", {}, "i"], " ", ["code", {}, "c*d*"], " "),
        *(link, " ", ["span", {}, "here"]),
    ]


def elements(waiting: list[Node]) -> Iterator[list[Any]]:
    for node in waiting:
        if not isinstance(node, str):
            yield node
            yield from elements(node[2:])


@given(st.text(alphabet="ab`*[]()<>#|-1. \n:/!&_", max_size=80))
def test_no_text_is_an_element_or_an_attribute_of_its_own(text: str) -> None:
    for tag, attributes, *_ in elements(nodes(text)):
        assert tag in _KNOWN
        assert set(attributes) <= ({"href", "target", "rel"} if tag == "a" else {"start"})


@given(st.sampled_from(["javascript:alert", "data:text/html,x", "//evil", "file:///etc", "HTTPS:evil"]))
def test_only_addresses_of_the_web_become_links(target: str) -> None:
    for written in (f"[a]({target})", f"[a][r]\n\n[r]: {target}", f"<{target}>"):
        assert not [one for one in elements(nodes(written)) if one[0] == "a"]
