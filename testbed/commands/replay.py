"""`mrc-testbed replay`: a run again, with the schedule that it had."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    folder: Annotated[Path, typer.Argument(help="Run folder, results/...", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder in which each run gets a folder of its own.")] = Path("results"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict line.")] = False,
) -> None:
    """Run a run folder's scenario again: the same seed, and the faults at the times that its plan.json holds.

    Exit status as of `run`.
    """
    from testbed.runner.planned import recorded_scenario
    from testbed.runner.run import run_scenario

    raise typer.Exit(run_scenario(recorded_scenario(folder), out, quiet, replays=folder).exit_code)
