"""The list of shipped scenarios for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.report.console import open_console

if TYPE_CHECKING:
    from mrc_testbed.testbed.scenario import Scenario

LISTING_WIDTH = 200
"""Width where the output is not a terminal: one line per scenario."""

_MARK = "*"
_NOTE = (
    f"{_MARK} needs the port program (`mrc-testbed doctor`). Times are of the workload. `mrc-testbed run quickstart`"
)


class CatalogueEntry(NamedTuple):
    """A shipped scenario as it is listed. `group`: the folder it is in; `seconds`: such as `3 x 12 s`."""

    name: str
    group: str
    seconds: str
    about: str


def catalogue_entry(name: str, group: str, scenario: Scenario) -> CatalogueEntry:
    """Seconds of the workload, with a matrix, variants or cases how many times, and `about`."""
    mark = f" {_MARK}" if scenario.needs_port_program else ""
    named = (scenario.variants, scenario.cases)
    axes = (*(scenario.matrix or {}).values(), *(names or ("alone",) for names in named))
    cells = prod(map(len, axes))
    seconds = f"{f'{cells} x ' if cells > 1 else ''}{scenario.expected_ns / 1e9:.0f} s"
    return CatalogueEntry(name, group, seconds, scenario.about + mark)


def show_catalogue(entries: Sequence[CatalogueEntry]) -> None:
    """Print them on standard output; those of a group follow each other."""
    console = open_console()
    if not console.is_terminal:
        console.width = LISTING_WIDTH
    console.print_without_blanks(catalogue_table(entries))
    console.print(f"\n{_NOTE}", soft_wrap=True)


def catalogue_table(entries: Sequence[CatalogueEntry]) -> Table:
    """A row for each, and an empty row between groups."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    group = entries[0].group if entries else ""
    for entry in entries:
        if entry.group != group:
            table.add_row()
        group = entry.group
        table.add_row(Text(entry.name, style="bold"), entry.seconds, Text(entry.about))
    return table
