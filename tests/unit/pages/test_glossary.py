"""The glossary: one definition per term, the page made of it, and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.pages.glossary import SECTIONS, SOURCE, TERMS, WIDTH, Term, definition, markdown, read

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "glossary.md"


def anchors(page: Path) -> set[str]:
    """Of the headings of a Markdown page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_page_is_made_of_the_definitions() -> None:
    again = "python -m mrc_testbed.testbed.pages.glossary > docs/glossary.md"
    assert PAGE.read_text(encoding="utf-8") == markdown(), again
    assert max(map(len, markdown().splitlines())) <= WIDTH


def test_paragraphs_of_a_term_are_its_tooltip_more_about_it_and_where_to_read_on() -> None:
    intro, sections = read(
        "# G\n\nIn\ntwo lines.\n\n## A\n\n### x\n\nAn x.\n\nMore\nof it.\n\nSee: a.md#x\n\n### y\n\nA y.\n"
    )
    assert intro == "In two lines."
    assert sections == {"A": (Term("x", "An x.", "More of it.", "a.md#x"), Term("y", "A y."))}


def test_lines_of_the_definitions_are_not_too_long() -> None:
    assert max(map(len, SOURCE.read_text(encoding="utf-8").splitlines())) <= WIDTH


def test_a_term_is_defined_once() -> None:
    assert sum(len(terms) for terms in SECTIONS.values()) == len(TERMS)
    assert len({name.lower() for name in TERMS}) == len(TERMS)


@pytest.mark.parametrize("name", TERMS)
def test_a_tooltip_is_one_short_sentence_without_markup(name: str) -> None:
    short = definition(name)
    assert short.endswith(".")
    assert len(short) <= 130
    assert ". " not in short
    assert not set(short) & set("`*[]<>")


@pytest.mark.parametrize("name", TERMS)
def test_a_link_leads_to_a_section(name: str) -> None:
    page, _, anchor = TERMS[name].link.partition("#")
    assert (DOCS / page).is_file()
    assert not anchor or anchor in anchors(DOCS / page)
