"""Terms of the glossary in a page: a dotted underline, and the definition on hover, focus or touch. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from mrc_testbed.testbed.pages.glossary import definition

TERM_SCRIPTS = ("terms.js",)
"""`Testbed.term`, for headings that scripts make, and Escape."""


def term(text: str | Markup, name: str = "") -> Markup:
    """`text` as an occurrence of the term `name`, by default of the text itself. Raises KeyError for an unknown one."""
    short = definition(name or str(text))
    return Markup('<abbr class="term" tabindex="0" title="{}">{}</abbr>').format(short, text)


def definitions(names: Iterable[str]) -> dict[str, str]:
    """The terms that the scripts of a page use, with their definitions."""
    return {name: definition(name) for name in names}
