"""Terms of the glossary in texts of lessons."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.shelf import shipped_lessons
from mrc_testbed.testbed.pages.explained import Explained
from mrc_testbed.testbed.pages.glossary import definition
from mrc_testbed.testbed.pages.live.lesson import lesson_content
from mrc_testbed.testbed.pages.markdown import Node, nodes


def words(node: Node) -> str:
    return node if isinstance(node, str) else "".join(map(words, node[2:]))


def terms(node: Node) -> list[Node]:
    if isinstance(node, str):
        return []
    return [node] if node[0] == "abbr" else [term for each in node[2:] for term in terms(each)]


def explained(text: str) -> list[str]:
    return [words(term) for node in Explained().nodes(nodes(text)) for term in terms(node)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("An EV, two EVs and a PSN.", ["EV", "PSN"]),
        ("EVs of planes", ["EVs", "planes"]),
        ("# EV\n\n`EV` and [EV](https://x.org) are no place for one", []),
        ("a link in a window, T and p0-t1-0 and T0-T1 links", []),
        ("ECN marks, and **PSNs** in bold", ["ECN marks", "PSNs"]),
        ("docs/PSN.md and EV-2", []),
    ],
)
def test_a_term_is_explained_where_it_is_used_first(text: str, found: list[str]) -> None:
    assert explained(text) == found


def test_a_definition_is_that_of_the_glossary() -> None:
    (node,) = Explained().nodes(nodes("a PSN"))
    assert terms(node) == [["abbr", {"class": "term", "tabindex": "0", "title": definition("PSN")}, "PSN"]]


@pytest.mark.nightly
def test_every_shipped_lesson_keeps_its_words_and_explains_some(tmp_path_factory: pytest.TempPathFactory) -> None:
    for folder in shipped_lessons():
        lesson = load_lesson(folder)
        plain = nodes(lesson.told.partition("\n")[2])
        made = lesson_content(lesson, folder, {}, True, None)["text"]
        assert [words(node) for node in made] == [words(node) for node in plain]
        assert [term for node in made for term in terms(node)], lesson.name
