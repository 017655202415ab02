"""`mrc-testbed bounds`: how much room expectations leave to what runs show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, Runs, runs_of
from mrc_testbed.testbed.commands.output import write_asked
from mrc_testbed.testbed.terminal import say

_Chance = Annotated[
    float,
    typer.Option(metavar="P", min=1e-6, max=0.1, help="That a run of a right program crosses one bound."),
]
_Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write everything as JSON to this file; - for standard output."),
]


def bounds(runs: Runs, out: Out = Path("results"), chance: _Chance = 0.001, json_: _Json = None) -> None:
    """Show which expectations a right program would miss now and then, by the spread of repeated runs.

    Runs with the same settings are repeats, whatever their seeds; those that are not believed do not count, and in
    virtual time a seed is one run. From five runs on it is known what bound the next one crosses once in 1000 times, or
    with the chance given. Exit status: 0 no bound is known to be tight, 1 some is, 2 bad input, 3 too few runs, or some
    run left an expectation open.
    """
    from mrc_testbed.testbed.app.bounds import bounds_of_folders
    from mrc_testbed.testbed.compare.bounds import Room, bounds_document, gravest
    from mrc_testbed.testbed.compare.bounds_table import show_bounds, totals
    from mrc_testbed.testbed.errors import ExitCode
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.rundir.results import run_folder

    to_stdout = json_ == Path("-")
    found = bounds_of_folders([run_folder(run, out) for run in runs_of(runs, out)], chance)
    console = open_console(stderr=to_stdout)
    for one in found:
        show_bounds(one, chance, console)
    console.print(totals(found))
    if json_:
        text = json.dumps(bounds_document(found, chance), indent=1) + "\n"
        if to_stdout:
            say(text, end="")
        else:
            write_asked("--json", json_, text)
    unknown = dict.fromkeys((Room.OPEN, Room.TOO_FEW), ExitCode.INCONCLUSIVE)
    codes = {Room.TIGHT: ExitCode.FAIL, **unknown}
    raise typer.Exit(codes.get(gravest(found), ExitCode.PASS))
