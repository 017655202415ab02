"""Where a file of the repository is on the site, and what a link to it becomes there.

Pages of docs/ keep their places and README.md is the home page. All other files that pages link to have a page each
under source/: Markdown as it is, other text as a listing, and a folder as the list of its files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = "README.md"
_CODE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)[ ]*$|`[^`\n]*`)", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")


def site_path(place: str) -> str:
    """The path, below the site's source, of the page or picture of a file or folder of the repository."""
    inside = place.removeprefix("docs/")
    if place == HOME:
        return "index.md"
    if inside != place and Path(place).suffix in {".md", ".svg", ".png", ".webp", ".gif"}:
        return inside
    shown = place.removeprefix(".")  # MkDocs leaves hidden folders out
    if (ROOT / place).is_dir():
        return f"source/{shown}/index.md"
    return f"source/{shown}" if place.endswith(".md") else f"source/{shown}.md"


def relinked(text: str, place: str) -> str:
    """Markdown of a file of the repository with its links as they are on the site."""
    here = posixpath.dirname(site_path(place))

    def moved(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if not target or ":" in target:
            return match[0]
        return f"]({posixpath.relpath(site_path(_resolved(place, target)), here or '.')}{anchor})"

    return _outside_code(text, lambda part: _LINK.sub(moved, part))


def linked(text: str, place: str) -> Iterator[str]:
    """Files and folders of the repository that Markdown links to, outside its code."""
    for part in _CODE.split(text)[::2]:
        for match in _LINK.finditer(part):
            if match[1] and ":" not in match[1]:
                yield _resolved(place, match[1])


def _resolved(place: str, target: str) -> str:
    """A relative link of a file, as a path from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), target))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = _CODE.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))
