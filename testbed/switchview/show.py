"""`show` in a prompt and on a command line: which view the words name, as text or JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect.spelling import did_you_mean
from mrc_testbed.testbed.switchview.reading import SwitchReading
from mrc_testbed.testbed.switchview.views import VIEWS, Cell, SwitchTable

UNKNOWN = "N/A"
"""Of a count that nobody knows; never 0."""
_GAP = "  "


def view_named(words: Sequence[str]) -> str:
    """The view that these words name, in VIEWS. Raises UsageError with those there are."""
    name = " ".join(words)
    if name in VIEWS:
        return name
    longer = [view for view in VIEWS if view.startswith(f"{name} ")] if name else []
    if longer:
        raise UsageError(f"`show {name}` goes on: {' | '.join(view.removeprefix(name).strip() for view in longer)}")
    hint = did_you_mean(name, VIEWS) or f"; there are {', '.join(VIEWS)}"
    raise UsageError(f"there is no view {name!r}{hint}")


def shown(reading: SwitchReading, view: str) -> str:
    """A view of a switch as a table for people."""
    table = VIEWS[view].table(reading)
    if not table.rows:
        return f"{reading.switch}: packets list no switches here, so there is no SID"
    cells = [[str(cell) if cell is not None else UNKNOWN for cell in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(table.columns, *cells, strict=True)]
    right = [_is_number(table, index) for index in range(len(table.columns))]
    lines = [table.columns, ["-" * width for width in widths], *cells]
    return "\n".join(_line(line, widths, right) for line in lines)


def _is_number(table: SwitchTable, column: int) -> bool:
    return not any(isinstance(row[column], str) for row in table.rows)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    )
    return _GAP.join(padded).rstrip()


def as_json(reading: SwitchReading, view: str) -> str:
    """The same as a JSON list of objects by column. What nobody knows is the text `N/A`, as SONiC prints it."""
    table = VIEWS[view].table(reading)
    rows = [dict(zip(table.columns, map(_value, row), strict=True)) for row in table.rows]
    return json.dumps(rows, indent=2)


def _value(cell: Cell) -> Cell:
    return UNKNOWN if cell is None else cell
