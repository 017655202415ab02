"""`mrc-testbed metrics`: what a run exported, as text for monitoring systems."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, RunArgument
from mrc_testbed.testbed.terminal import say


class TextFormat(StrEnum):
    """Of metrics."""

    OPENMETRICS = "om"
    PROMETHEUS = "prom"


def metrics(
    run: RunArgument,
    format_: Annotated[
        TextFormat, typer.Option("--format", help="om: OpenMetrics 1.0; prom: for node_exporter's textfile collector.")
    ] = TextFormat.OPENMETRICS,
    truth: Annotated[bool, typer.Option("--truth", help="Also losses that only the testbed knows.")] = False,
    out: Out = Path("results"),
) -> None:
    """Print the metrics of a run as they were at its end. `run --metrics` serves them while it goes on."""
    from mrc_testbed.testbed.app.recorded_series import recorded_readings
    from mrc_testbed.testbed.checks.judge import judge
    from mrc_testbed.testbed.checks.record import load_record
    from mrc_testbed.testbed.metrics.exposition import open_metrics, prometheus_text
    from mrc_testbed.testbed.rundir.results import run_folder

    record = load_record(run_folder(run, out))
    found = recorded_readings(record, judge(record), truth)
    say(open_metrics(found) if format_ is TextFormat.OPENMETRICS else prometheus_text(found), end="")
