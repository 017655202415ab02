"""`mrc-testbed compare`: runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, Runs, runs_of

_Against = Annotated[
    list[Path] | None,
    typer.Option(metavar="RUN", help="A run of the base group, such as one of another version. Repeatable."),
]
_Count = Annotated[bool, typer.Option("--count-inconclusive", help="Count inconclusive runs too.")]


def compare(
    runs: Runs, against: _Against = None, out: Out = Path("results"), count_inconclusive: _Count = False
) -> None:
    """Show by how much runs differ and whether that is more than chance; for two runs of one seed, what differed.

    Runs with the same settings are repeats of each other, whatever their seeds. The others are compared with the group
    of the first run. Everything, with curves, is in compare.html and compare.json in a new folder. Exit status 3: two
    runs in virtual time with the same seed, settings and plugins differ.
    """
    from mrc_testbed.testbed.app.comparison import PAGE_FILE, compare_folders
    from mrc_testbed.testbed.compare.table import show_comparison
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.rundir.results import run_folder

    given, base = ([run_folder(run, out) for run in runs_of(each, out)] if each else [] for each in (runs, against))
    found = compare_folders(given, out, count_inconclusive, base)
    console = open_console()
    show_comparison(found.comparison, found.sequences, console)
    console.print(f"\n{found.folder / PAGE_FILE}", soft_wrap=True)
    if found.error:
        raise found.error
