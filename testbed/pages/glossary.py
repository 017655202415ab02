"""The terms of the field and of this testbed, defined once: docs/glossary.md and the tooltips of all pages.

glossary.md beside this file has the definitions: `## section`, `### term`, then paragraphs: the tooltip, which is one
plain sentence without markup; more about it, for the page; and `See: ` the page of docs/ that explains the term.
`python -m mrc_testbed.testbed.pages.glossary > docs/glossary.md` writes the page.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.terminal import say

WIDTH = 120
SOURCE = Path(__file__).with_name("glossary.md")
_SEE = "See: "
_NOTE = (
    "This file is generated from `testbed/pages/glossary.md` by `python -m mrc_testbed.testbed.pages.glossary > "
    "docs/glossary.md`; edit the definitions there."
)


class Term(NamedTuple):
    """`short`: one plain sentence without markup, the tooltip. `more`: further Markdown for docs/glossary.md.
    `link`: the page, with its anchor, that explains the term."""

    name: str
    short: str
    more: str = ""
    link: str = ""


def read(text: str) -> tuple[str, dict[str, tuple[Term, ...]]]:
    """What glossary.md says: the text below its title, and the terms by section."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    intro = _joined(head.partition("\n")[2])
    return intro, {title: terms for title, terms in map(_section, sections)}


def _section(text: str) -> tuple[str, tuple[Term, ...]]:
    title, *terms = re.split(r"^### ", text, flags=re.MULTILINE)
    return title.strip(), tuple(map(_term, terms))


def _term(text: str) -> Term:
    name, short, *rest = map(_joined, text.strip().split("\n\n"))
    link = rest.pop().removeprefix(_SEE) if rest and rest[-1].startswith(_SEE) else ""
    return Term(name, short, " ".join(rest), link)


def _joined(paragraph: str) -> str:
    return " ".join(paragraph.split())


_INTRO, SECTIONS = read(SOURCE.read_text(encoding="utf-8"))
TERMS: dict[str, Term] = {term.name: term for terms in SECTIONS.values() for term in terms}


def definition(name: str) -> str:
    """The tooltip of a term. Raises KeyError for one that is not defined."""
    return TERMS[name].short


def markdown() -> str:
    """docs/glossary.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Glossary"
    yield ""
    yield from _wrapped(f"{_INTRO} {_NOTE}")
    for title, terms in SECTIONS.items():
        yield ""
        yield f"## {title}"
        for term in terms:
            yield ""
            yield f"### {term.name}"
            yield ""
            link = f"See [{_place(term.link)}]({term.link})." if term.link else ""
            yield from _wrapped(" ".join(part for part in (term.short, term.more, link) if part))


def _place(link: str) -> str:
    """What a link is called: the file, and its section in words."""
    page, _, anchor = link.partition("#")
    name = page.removeprefix("../")
    return f"{name}, {anchor.replace('-', ' ')}" if anchor else name


def _wrapped(text: str) -> list[str]:
    """Lines of text; a link is never broken."""
    kept = text
    for link in {term.link for term in TERMS.values()}:
        label = _place(link)
        kept = kept.replace(f"[{label}]", f"[{label.replace(' ', chr(0))}]")
    lines = textwrap.wrap(kept, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


if __name__ == "__main__":
    say(markdown(), end="")
