"""How far runs of other seeds lie apart, on a terminal of 100 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mrc_testbed.testbed.compare.spread import FigureSpread, apart_words

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

TITLE = "spread between seeds"
ABOUT = (
    "Apart: by how much two runs with other seeds differ, in the mean, with a 95 % interval (jackknife). In virtual"
    " time the seed alone decides it, on a kernel the machine, too."
)
HEADS = ("", "", "seeds", "least", "median", "most", "apart")


def spread_table(found: Sequence[FigureSpread]) -> Table:
    """A row a group, below its figure."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style="bold")
    table.title, table.title_justify, table.title_style = TITLE, "left", "bold"
    for number, head in enumerate(HEADS):
        justify: JustifyMethod = "right" if number > 1 else "left"
        table.add_column(Text(head, style="bold"), justify=justify, overflow="fold", no_wrap=number > 1)
    for one in found:
        for number, group in enumerate(one.groups):
            title = "" if number else one.figure.title
            shown = (one.figure.shown(value) for value in (group.values[0], group.median, group.values[-1]))
            table.add_row(title, group.label, str(len(group.values)), *shown, apart_words(group))
    return table
