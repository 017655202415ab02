"""`mrc-testbed replay`: runs a run folder again with its schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, RunArgument, note_core, warn_of_plugins
from mrc_testbed.testbed.commands.web import (
    Interactive,
    Metrics,
    MetricsLinger,
    MetricsTruth,
    WatchOptions,
    Web,
    WebPort,
    shown,
    wait_for_the_room,
)


def replay(
    run: RunArgument,
    virtual: Annotated[
        bool | None,
        typer.Option("--virtual/--kernel", help="In virtual time, or on this kernel; else where it was run."),
    ] = None,
    out: Out = Path("results"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict line.")] = False,
    web: Web = False,
    web_port: WebPort = None,
    interactive: Interactive = False,
    metrics: Metrics = "",
    metrics_truth: MetricsTruth = False,
    metrics_linger: MetricsLinger = None,
) -> None:
    """Run a run folder's scenario again, with the same seed and the fault times of its plan.json.

    Exit status as of `run`.
    """
    from mrc_testbed.testbed.app.run import run_scenario
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.rundir.planned import recorded_scenario
    from mrc_testbed.testbed.rundir.results import run_folder

    watch = WatchOptions(web, web_port, interactive, metrics, metrics_truth, metrics_linger)
    watch.require()
    folder = run_folder(run, out)
    scenario = recorded_scenario(folder, virtual)
    warn_of_plugins(folder)
    console = open_console()
    with shown(watch) as server:
        if server:
            server.title = scenario.name
        outcome = run_scenario(scenario, out, quiet, console, replays=folder, audience=server)
        note_core()
        wait_for_the_room(server, outcome.exit_code, console.is_terminal)
    raise typer.Exit(outcome.exit_code)
