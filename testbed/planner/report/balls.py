"""How evenly hashed and sprayed flows load links, as a table and a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from mrc_testbed.testbed.planner.arithmetic.balls import PACKETS, TRIALS, Crowding
from mrc_testbed.testbed.planner.arithmetic.numbers import Provenance

HEADS = ("flows", "links", "hashed: closed form", "simulated", "5-95 %", "sprayed")
NOTES = (
    f"closed form: {Provenance.DERIVED}, loads of links binomial and independent",
    f"simulated: {Provenance.DERIVED}, mean of {TRIALS} throws and their 5-95 %",
    f"sprayed: {Provenance.DERIVED}, {PACKETS} packets a flow ({Provenance.ASSUMED}), each on a random link; taking "
    "turns is more even",
)


def show_crowding(rows: Sequence[Crowding], console: Console) -> None:
    """Load of the busiest link over the mean, a row for each number of flows and links."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for head in HEADS:
        table.add_column(head, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*crowding_cells(row))
    console.print("load of the busiest link over the mean")
    console.print(table)
    for note in NOTES:
        console.print(note, soft_wrap=True)


def crowding_cells(row: Crowding) -> tuple[str, ...]:
    """Below HEADS."""
    counts = (f"{count:,}" for count in (row.flows, row.links))
    return *counts, f"{row.expected:.2f}", f"{row.mean:.2f}", f"{row.low:.2f}-{row.high:.2f}", f"{row.sprayed:.2f}"


def crowding_document(rows: Sequence[Crowding]) -> dict[str, Any]:
    """The same as JSON types."""
    return {"balls": [asdict(row) for row in rows], "notes": list(NOTES)}
