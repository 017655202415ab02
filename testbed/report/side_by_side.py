"""Tables of designs side by side, as many as the width holds: labels and marks wrap, numbers never do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")
MOST = 3
"""Designs in one table; more of them go into further tables."""
_LEAST_LABEL = 24
_GAP = 2


class SideBySideRow(NamedTuple):
    """A label, a cell for each design, and the mark; cells and marks may have several lines."""

    label: str
    cells: Sequence[str]
    mark: str


def show_side_by_side(
    shown: Sequence[T], rows_of: Callable[[Sequence[T]], Sequence[SideBySideRow]], console: Console
) -> None:
    """All of `shown` in one table or several. `rows_of`: the rows of a table of some of them, its heads first."""
    while shown:
        for count in range(min(MOST, len(shown)), 0, -1):
            rows = rows_of(shown[:count])
            widths = _widths(rows, console.width)
            if sum(widths) + _GAP * (len(widths) - 1) <= console.width:
                break
        console.print(_table(rows, widths))
        shown = shown[count:]


def _widths(rows: Sequence[SideBySideRow], available: int) -> list[int]:
    """Of all columns: numbers as wide as they are, then the marks' longest word, then labels; what is left over goes
    to labels first."""
    cells = [_longest(column) for column in zip(*(row.cells for row in rows), strict=True)]
    label, mark = _longest([row.label for row in rows]), _longest([row.mark for row in rows])
    least_label = min(label, _LEAST_LABEL)
    least_mark = max(len(word) for row in rows for word in (row.mark.split() or [""]))
    spare = max(available - sum(cells) - least_label - least_mark - _GAP * (len(cells) + 1), 0)
    label_width = min(label, least_label + spare)
    mark_width = min(mark, least_mark + spare - (label_width - least_label))
    return [label_width, *cells, mark_width]


def _longest(texts: Sequence[str]) -> int:
    return max(len(line) for text in texts for line in text.split("\n"))


def _table(rows: Sequence[SideBySideRow], widths: Sequence[int]) -> Table:
    """On a terminal that is too narrow for one design, columns shrink and their text wraps."""
    table = Table(box=None, header_style="bold", padding=(0, _GAP, 0, 0), pad_edge=False)
    heads = (rows[0].label, *rows[0].cells, rows[0].mark)
    for place, (head, width) in enumerate(zip(heads, widths, strict=True)):
        number = 0 < place < len(widths) - 1
        table.add_column(head, justify="right" if number else "left", overflow="fold", width=width)
    for row in rows[1:]:
        table.add_row(_wrapped(row.label, widths[0]), *row.cells, row.mark)
    return table


def _wrapped(label: str, width: int) -> str:
    """With further lines as far to the right as the first."""
    indent = label[: len(label) - len(label.lstrip())]
    return "\n".join(wrap(label, max(width, len(indent) + 1), subsequent_indent=indent))
