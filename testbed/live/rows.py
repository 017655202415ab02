"""Rows of styled text, and the symbols of states, distinct by shape as well as colour, also in ASCII. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class StyledText(NamedTuple):
    """A piece of a row. `style`: a name in STYLES, empty for plain."""

    text: str
    style: str = ""


Row = list[StyledText]

STYLES = {
    "title": "bold",
    "dim": "dim",
    "good": "green",
    "skip": "yellow",
    "bad": "bold red",
    "denied": "magenta",
    "load": "cyan",
    "idle": "dim cyan",
    "fault": "bold red",
    "heal": "green",
    "strained": "bold yellow",
}
"""Styles in the sixteen colours of any terminal, so that they follow its theme."""


@dataclass(frozen=True)
class Signs:
    """One character each, except `loads`: from idle to full."""

    loads: str
    broken: str
    lossy: str
    slow: str
    rising: str
    silent: str
    good: str
    skip: str
    bad: str
    denied: str
    light: str
    done: str
    to_do: str
    more: str


UNICODE = Signs("▁▂▃▄▅▆▇█", "✕", "≈", "∿", "↑", "?", "■", "▒", "✕", "○", "●", "━", "─", "…")
ASCII = Signs("01234567", "X", "~", "s", "^", "?", "#", "+", "x", "o", "*", "=", "-", ".")


def length(row: Iterable[StyledText]) -> int:
    """Its width in columns."""
    return sum(len(span.text) for span in row)


def cut(row: Row, width: int, more: str) -> Row:
    """At most `width` columns; if text is cut, the last character is `more`."""
    if length(row) <= width:
        return row
    kept: Row = []
    room = width - 1
    for text, style in row:
        kept.append(StyledText(text[:room], style))
        room -= len(text)
        if room <= 0:
            break
    return [*kept, StyledText(more, "dim")] if width > 0 else []


def padded(row: Row, width: int) -> Row:
    """Padded with spaces to `width` columns."""
    return [*row, StyledText(" " * (width - length(row)))]


def beside(left: Row, right: Row, width: int) -> Row:
    """One text at the left and one at the right margin; both must fit."""
    return [*left, StyledText(" " * (width - length(left) - length(right))), *right]


def joined(signs: Iterable[StyledText]) -> Row:
    """The same with adjacent spans of one style merged."""
    row: Row = []
    for span in signs:
        if row and row[-1].style == span.style:
            row[-1] = StyledText(row[-1].text + span.text, span.style)
        else:
            row.append(span)
    return row
