"""Lists inside lists by two spaces, as CommonMark reads them; Python's Markdown asks for four."""

from __future__ import annotations

from markdown import Markdown
from markdown.extensions import Extension


class ShortIndents(Extension):
    """An indent is two spaces wide, that of what belongs to a list's item."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # the name that Markdown asks for
        """Makes the parts of the parser again, which have read the width when they were made."""
        md.tab_length = 2
        md.build_parser()
