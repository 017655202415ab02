"""`mrc-testbed replay`: a run again, with the schedule that it had."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.commands.options import Out, Run


def replay(
    run: Run,
    out: Out = Path("results"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict line.")] = False,
) -> None:
    """Run a run folder's scenario again: the same seed, and the faults at the times that its plan.json holds.

    Exit status as of `run`.
    """
    from testbed.runner.planned import recorded_scenario
    from testbed.runner.results import run_folder
    from testbed.runner.run import run_scenario

    folder = run_folder(run, out)
    raise typer.Exit(run_scenario(recorded_scenario(folder), out, quiet, replays=folder).exit_code)
