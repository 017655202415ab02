"""`mrc-testbed export`: a run for other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, RunArgument, warn_of_plugins
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.terminal import say


class ExportTool(StrEnum):
    """What a run can be exported to as a file."""

    PERFETTO = "perfetto"


def export(
    run: RunArgument,
    to: Annotated[
        ExportTool | None, typer.Option(help="perfetto: one timeline for ui.perfetto.dev.", show_default=False)
    ] = None,
    otlp: Annotated[
        str, typer.Option(metavar="URL", help="Send it as an OpenTelemetry trace to this receiver.", show_default=False)
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to; - for standard output. Else beside the run.", show_default=False),
    ] = None,
    out: Out = Path("results"),
) -> None:
    """Give a run to another tool, as a file or as a trace: faults, phases, steps, ports, EVs and goodput on one
    timeline."""
    from mrc_testbed.testbed.checks.judge import judge
    from mrc_testbed.testbed.checks.record import load_record
    from mrc_testbed.testbed.export.otlp import send_trace
    from mrc_testbed.testbed.export.perfetto import perfetto_text
    from mrc_testbed.testbed.export.timeline import timeline
    from mrc_testbed.testbed.rundir.results import run_folder

    if to is None and not otlp:
        raise UsageError("export needs --to perfetto, or --otlp URL")
    folder = run_folder(run, out)
    record = load_record(folder)
    course = timeline(record)
    if to is not None:
        _write(file or folder / f"{to.value}.json", perfetto_text(course, record.scenario.name))
    if otlp:
        say(f"{send_trace(record, judge(record), course, otlp)} spans sent to {otlp}", err=True)
    for what in course.left_out:
        say(f"note: left out: {what}", err=True)
    warn_of_plugins(folder)


def _write(target: Path, text: str) -> None:
    from mrc_testbed.testbed.rundir.files import write_whole

    if target == Path("-"):
        say(text, end="")
        return
    try:
        write_whole(target, text)
    except OSError as error:
        raise UsageError(f"--file {target}: cannot be written: {error.strerror}") from None
    say(target)
