"""Agreement of the two worlds on a terminal: a table a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.compare.table import WIDTH
from mrc_testbed.testbed.compare.words import NOTHING, estimate_words, value_words
from mrc_testbed.testbed.compare.worlds import Agreement, Reads, WorldRow, overall
from mrc_testbed.testbed.report.console import plain_table
from mrc_testbed.topos.units import plural

_STYLES = {Reads.AGREES: "green", Reads.DIFFERS: "bold red", Reads.UNKNOWN: "bold yellow"}
_HEADINGS = ("figure", "kernel", "virtual", "difference", "tolerance", "")


def show_agreement(one: Agreement, console: Console) -> None:
    """The table of one scenario, and in a line what comes of it."""
    console.width = max(console.width, WIDTH)
    if one.rows:
        console.print(_table(one))
    if one.zero:
        console.print(Text(f"0 in both worlds: {', '.join(one.zero)}"), soft_wrap=True)
    # A name such as `far-apart [rtt=20ms]` is no markup.
    console.print(Text(f"{one.name}: {said(one)}\n", style=_STYLES[one.reads]))


def totals(agreements: Sequence[Agreement]) -> str:
    """`3 scenarios: 2 agrees, 1 differs`, and what comes of all."""
    counts = [(sum(one.reads is each for one in agreements), each) for each in Reads]
    parts = ", ".join(f"{count} {each.value}" for count, each in counts if count)
    return f"{plural(len(agreements), 'scenario')}: {parts}; the worlds: {overall(agreements).value}"


def said(one: Agreement) -> str:
    """What comes of it, with the figures that differ or the reason why nothing is known."""
    figures = ", ".join(row.row.figure.title for row in one.differing)
    return ": ".join(filter(None, (one.reads.value, figures or one.why)))


def _table(one: Agreement) -> Table:
    table = plain_table()
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if 0 < number < 4 else "left", overflow="fold")
    for row in one.rows:
        table.add_row(*_cells(row), Text(row.reads.value, style=_STYLES[row.reads]))
    return table


def _cells(row: WorldRow) -> Iterator[str]:
    yield row.row.figure.title
    yield value_words(row.row, row.kernel)
    yield value_words(row.row, row.virtual)
    yield difference_words(row)
    yield row.tolerance.said


def difference_words(row: WorldRow) -> str:
    """The ratio of the two, or of few their difference: `x1.02`, `+3`."""
    estimate = row.virtual.estimate
    return estimate_words(row.row, estimate)[0] if estimate else NOTHING
