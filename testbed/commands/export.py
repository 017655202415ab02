"""`mrc-testbed export`: a run for other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, RunArgument, warn_of_plugins
from mrc_testbed.testbed.terminal import say


class ExportTool(StrEnum):
    """What a run can be exported to as a file."""

    PERFETTO = "perfetto"


def export(
    run: RunArgument,
    to: Annotated[ExportTool, typer.Option(help="perfetto: one timeline for ui.perfetto.dev.")] = ExportTool.PERFETTO,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to; - for standard output. Else beside the run.", show_default=False),
    ] = None,
    out: Out = Path("results"),
) -> None:
    """Write a run as a file for another tool: faults, phases, steps, ports, EVs and goodput on one timeline."""
    from mrc_testbed.testbed.checks.record import load_record
    from mrc_testbed.testbed.export.perfetto import perfetto_text
    from mrc_testbed.testbed.export.timeline import timeline
    from mrc_testbed.testbed.rundir.results import run_folder

    folder = run_folder(run, out)
    record = load_record(folder)
    course = timeline(record)
    text = perfetto_text(course, record.scenario.name)
    if file == Path("-"):
        say(text, end="")
    else:
        target = file or folder / f"{to.value}.json"
        _write(target, text)
        say(target)
    for what in course.left_out:
        say(f"note: left out: {what}", err=True)
    warn_of_plugins(folder)


def _write(target: Path, text: str) -> None:
    from mrc_testbed.testbed.errors import UsageError
    from mrc_testbed.testbed.rundir.files import write_whole

    try:
        write_whole(target, text)
    except OSError as error:
        raise UsageError(f"--file {target}: cannot be written: {error.strerror}") from None
