"""`mrc-testbed export`: a run for other tools, the flows of a scenario for simulators, its fabric for labs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import Out, warn_of_plugins
from mrc_testbed.testbed.commands.output import require_free
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.scenario import Scenario


class ExportTool(StrEnum):
    """What a run, or the flows or the fabric of a scenario, can be exported to."""

    PERFETTO = "perfetto"
    CONTAINERLAB = "containerlab"
    FRR = "frr"
    SONIC = "sonic"
    HTSIM = "htsim"
    FLOWS = "flows"


_LABS = "Labs: the fabric of a scenario"


def export(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Run folder, or the name of one in results/, or latest. For labs: or a scenario.",
            show_default=False,
        ),
    ],
    to: Annotated[
        ExportTool | None,
        typer.Option(
            help="perfetto: one timeline for ui.perfetto.dev. containerlab, frr, sonic: a folder with the fabric as a "
            "lab, whose switches are that. htsim, flows: the flows, for simulators.",
            show_default=False,
        ),
    ] = None,
    otlp: Annotated[
        str, typer.Option(metavar="URL", help="Send it as an OpenTelemetry trace to this receiver.", show_default=False)
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to; - for standard output. Else beside the run; a lab: folder NAME-TO.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a scenario key. Repeatable.", rich_help_panel=_LABS),
    ] = None,
    shape: Annotated[
        bool, typer.Option("--shape", help="Ports have the scenario's rate, and hosts its T.", rich_help_panel=_LABS)
    ] = False,
    image: Annotated[
        str, typer.Option(metavar="NAME", help="Container image of the switches.", rich_help_panel=_LABS)
    ] = "",
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite what is there.")] = False,
    out: Out = Path("results"),
) -> None:
    """Give a run to another tool, as a file or as a trace: faults, phases, steps, ports, EVs and goodput on one
    timeline. Or give the fabric of a scenario to a lab, as a folder for containerlab, or its flows to a simulator."""
    if to is None and not otlp:
        raise UsageError(f"export needs --to {', '.join(ExportTool)}, or --otlp URL")
    if to in (None, ExportTool.PERFETTO):
        _refuse_lab_options(set_, shape, image)
        _export_run(run, to, otlp, file, out, force)
    elif otlp:
        raise UsageError(f"--otlp sends a run; --to {to} writes what a scenario has")
    elif to in (ExportTool.HTSIM, ExportTool.FLOWS):
        _refuse_lab_options(None, shape, image)
        _export_flows(_scenario_of(run, out, set_ or []), to, file, force)
    else:
        assert to is not None
        _export_lab(_scenario_of(run, out, set_ or []), to, file, shape, image, force)


def _refuse_lab_options(set_: list[str] | None, shape: bool, image: str) -> None:
    given = [name for name, value in (("--set", set_), ("--shape", shape), ("--image", image)) if value]
    if given:
        raise UsageError(f"{given[0]} is for labs: --to containerlab, frr or sonic")


def _export_run(run: Path, to: ExportTool | None, otlp: str, file: Path | None, out: Path, force: bool) -> None:
    from mrc_testbed.testbed.checks.judge import judge
    from mrc_testbed.testbed.checks.record import load_record
    from mrc_testbed.testbed.export.otlp import send_trace
    from mrc_testbed.testbed.export.perfetto import perfetto_text
    from mrc_testbed.testbed.export.timeline import timeline
    from mrc_testbed.testbed.rundir.results import run_folder

    folder = run_folder(run, out)
    record = load_record(folder)
    course = timeline(record)
    if to is not None:
        _write(file or folder / f"{to.value}.json", perfetto_text(course, record.scenario.name), force or not file)
    if otlp:
        say(f"{send_trace(record, judge(record), course, otlp)} spans sent to {otlp}", err=True)
    for what in course.left_out:
        say(f"note: left out: {what}", err=True)
    warn_of_plugins(folder)


def _export_lab(scenario: Scenario, to: ExportTool, file: Path | None, shape: bool, image: str, force: bool) -> None:
    from mrc_testbed.testbed.export.lab.lab import LabTool, lab_of

    lab = lab_of(scenario, LabTool(to.value), shape, image)
    folder = file or Path(f"{scenario.name}-{to.value}")
    _write_folder(folder, lab.files, force)
    say(folder)
    for what in lab.lost:
        say(f"not in it: {what}", err=True)


def _export_flows(scenario: Scenario, to: ExportTool, file: Path | None, force: bool) -> None:
    from mrc_testbed.testbed.export.flows import SUFFIXES, exported_flows

    flows = exported_flows(scenario, to.value)
    _write(file or Path(f"{scenario.name}{SUFFIXES[to.value]}"), "".join(f"{line}\n" for line in flows.lines), force)
    for line in flows.lost:
        say(f"not in it: {line}", err=True)


def _scenario_of(run: Path, out: Path, changes: list[str]) -> Scenario:
    """Of a run, or a scenario file or name: a file or a shipped name comes first."""
    from mrc_testbed.testbed.checks.record import load_record
    from mrc_testbed.testbed.consent import run_what_scenarios_name
    from mrc_testbed.testbed.rundir.results import run_folder
    from mrc_testbed.testbed.scenario import load_scenario

    if run.is_dir() or str(run) == "latest" or (out / run).is_dir():
        if changes:
            raise UsageError("--set changes a scenario, not a run that is over: name the scenario")
        return load_record(run_folder(run, out)).scenario
    run_what_scenarios_name()
    return load_scenario(run, changes)


def _write_folder(folder: Path, files: Mapping[str, str], force: bool) -> None:
    from mrc_testbed.testbed.whole_files import write_folder

    if str(folder) == "-":
        raise UsageError("--file -: a lab is a folder, not one file")
    try:
        there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
        if strangers := sorted(there - files.keys()):
            raise UsageError(f"--file {folder}: has other files, {strangers[0]} for one; name a new folder")
        require_free(folder, force or not there, folder=True)
        write_folder(folder, files)
    except OSError as error:
        raise UsageError(f"--file {folder}: cannot be written: {error.strerror}") from None


def _write(target: Path, text: str, force: bool) -> None:
    from mrc_testbed.testbed.whole_files import write_whole

    if target == Path("-"):
        say(text, end="")
        return
    require_free(target, force)
    try:
        write_whole(target, text)
    except OSError as error:
        raise UsageError(f"--file {target}: cannot be written: {error.strerror}") from None
    say(target)
