"""`mrc-testbed run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.commands.options import Out, ScenarioFile, Seed, Set


def run(
    scenario: ScenarioFile,
    set_: Set = None,
    seed: Seed = None,
    out: Out = Path("results"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict line.")] = False,
) -> None:
    """Build the fabric, run the workload while faults come and go, and give a verdict.

    Exit status: 0 pass, 1 fail, 2 bad input, 3 inconclusive, 4 the machine lacks something, 130 interrupted.
    """
    from testbed.runner.run import run_scenario
    from testbed.scenario import load_scenario

    raise typer.Exit(run_scenario(load_scenario(scenario, set_ or [], seed), out, quiet))
