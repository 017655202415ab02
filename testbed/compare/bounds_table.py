"""The room of bounds on a terminal: a table a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.compare.bounds import BoundRow, BoundsOf, Room
from mrc_testbed.testbed.compare.table import WIDTH
from mrc_testbed.testbed.compare.words import NOTHING
from mrc_testbed.testbed.report.console import plain_table
from mrc_testbed.topos.units import plural

_STYLES = {
    Room.TIGHT: "bold red",
    Room.OPEN: "bold yellow",
    Room.TOO_FEW: "bold yellow",
    Room.ENOUGH: "green",
}


def show_bounds(one: BoundsOf, chance: float, console: Console) -> None:
    """How many runs, and a row an expectation."""
    console.width = max(console.width, WIDTH)
    out = f", {one.left_out} more not believed" if one.left_out else ""
    copies = f", {one.copies} more the same again in virtual time" if one.copies else ""
    console.print(Text(f"{one.label}: {plural(one.runs, 'run')}{out}{copies}", style="bold"))
    if one.bounds:
        console.print(_table(one, chance))
    console.print()


def totals(found: Sequence[BoundsOf]) -> str:
    """`14 bounds: 1 tight, 13 enough`."""
    rooms = [row.room for one in found for row in one.bounds]
    counts = ", ".join(f"{rooms.count(room)} {room}" for room in Room if room in rooms)
    return f"{plural(len(rooms), 'bound')}{': ' if counts else ''}{counts}"


def _table(one: BoundsOf, chance: float) -> Table:
    table = plain_table()
    table.add_column("expectation", ratio=1, overflow="fold")
    for heading in ("observed", "deviations\nto the bound", f"once in {number(1 / chance)}\nruns beyond"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("room", no_wrap=True)
    for row in one.bounds:
        style = _STYLES.get(row.room, "none") if row.decides else "none"
        table.add_row(Text(row.name), *_cells(row), Text(_room(row), style=style))
    return table


def _room(row: BoundRow) -> str:
    """`tight, missed by 2, open in 1, has no say`."""
    said: list[str] = [f"open in {row.open}" if row.room is Room.OPEN else row.room]
    said += [f"missed by {row.missed}"] if row.missed else []
    said += [f"open in {row.open}"] if row.open and row.room is not Room.OPEN else []
    return ", ".join([*said, *([] if row.decides else ["has no say"])])


def _cells(row: BoundRow) -> Iterator[str]:
    ends = dict.fromkeys(number(end) for end in (min(row.observed), max(row.observed))) if row.observed else [NOTHING]
    yield f"{' to '.join(ends)} {row.unit}".rstrip()
    yield NOTHING if row.deviations is None else number(row.deviations, 2)
    yield NOTHING if row.needed is None else f"{number(row.needed)} {row.unit}".rstrip()
