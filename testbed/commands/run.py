"""`mrc-testbed run`."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands import errors
from mrc_testbed.testbed.commands.options import (
    HOW,
    OUTPUT,
    WHAT,
    Against,
    CasesOption,
    Matrix,
    Out,
    ScaleOption,
    ScenarioFiles,
    Seed,
    Set,
    Variants,
    Virtual,
    in_world,
    note_core,
    note_left_out,
    sweep_of,
    warn_of_budget,
    warn_of_captures,
)
from mrc_testbed.testbed.commands.output import write_asked
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
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.inputs import STANDARD_STREAM
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrc_testbed.testbed.report.console import PatientConsole
    from mrc_testbed.testbed.report.outcome import Case, RunOutcome
    from mrc_testbed.testbed.web.server_process import ServerProcess

_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict lines.", rich_help_panel=OUTPUT)
]
_Repeat = Annotated[int, typer.Option(metavar="N", min=1, help="Run each scenario N times.", rich_help_panel=WHAT)]
_VarySeed = Annotated[
    bool, typer.Option("--vary-seed", help="With --repeat: seed, seed + 1, seed + 2 ...", rich_help_panel=WHAT)
]
_Many = Annotated[bool, typer.Option("--many", help="Allow more than 100 runs of a matrix.", rich_help_panel=WHAT)]
_Retry = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Retry a run that the machine spoiled up to N times; a fail is never retried.",
        rich_help_panel=HOW,
    ),
]
_Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Run N at once, in virtual time.", rich_help_panel=HOW)]
_Junit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write JUnit XML to this file.", show_default=False, rich_help_panel=OUTPUT),
]
_Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write all verdicts as JSON to this file; - for standard output.",
        rich_help_panel=OUTPUT,
    ),
]
_DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print what the run would do to this machine. Builds and writes nothing.", rich_help_panel=HOW
    ),
]
_Tied = Annotated[
    int | None,
    typer.Option(
        metavar="FD", help="End as by SIGTERM when this descriptor, of its parent, closes.", rich_help_panel=HOW
    ),
]
_Cell = Annotated[Path | None, typer.Option(hidden=True, help="Write what a sweep keeps of the run to this file.")]


def run(
    scenarios: ScenarioFiles,
    set_: Set = None,
    seed: Seed = None,
    matrix: Matrix = None,
    variants: Variants = "",
    against: Against = "",
    cases_: CasesOption = "",
    virtual: Virtual = False,
    scale: ScaleOption = "",
    out: Out = Path("results"),
    quiet: _Quiet = False,
    repeat: _Repeat = 1,
    vary_seed: _VarySeed = False,
    many: _Many = False,
    retry_inconclusive: _Retry = 0,
    jobs: _Jobs = 1,
    junit: _Junit = None,
    json_: _Json = None,
    web: Web = False,
    web_port: WebPort = None,
    interactive: Interactive = False,
    metrics: Metrics = "",
    metrics_truth: MetricsTruth = False,
    metrics_linger: MetricsLinger = None,
    dry_run: _DryRun = False,
    tied: _Tied = None,
    cell: _Cell = None,
) -> None:
    """Build the fabric, run the workload with its faults, and give a verdict.

    Several scenarios run one after the other, in virtual time with --jobs several at once; mistakes in any of the
    files are reported before anything runs. With a matrix, variants or cases each combination is run, and the runs are
    compared at the end; cells of another transport than the file's are measured, and do not decide. Exit status:
    0 pass, 1 fail, 2 bad input, 3 inconclusive, 4 the machine lacks something, 130 interrupted. Of several runs the
    most serious: 130, 1, 4, 2, 3, 0. docs/ci.md has more.
    """
    run_what_scenarios_name()
    from contextlib import nullcontext

    from rich.text import Text

    from mrc_testbed.testbed.app import run as runner
    from mrc_testbed.testbed.app.ahead import RunsAhead, refuse_jobs
    from mrc_testbed.testbed.app.batch import Repetitions, load_cases, run_cases
    from mrc_testbed.testbed.app.pack import expected_s, rough
    from mrc_testbed.testbed.app.reports import Reports
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.report.outcome import exit_code_of

    _tie(tied)
    watch = WatchOptions(web, web_port, interactive, metrics, metrics_truth, metrics_linger)
    watch.require()
    times, sweep = Repetitions(repeat, vary_seed, many), sweep_of(matrix, variants, against, cases_)
    cases = load_cases(scenarios, in_world(set_, virtual, scale), seed, times, sweep)
    _require_portable(cases if cell else ())
    if jobs > 1:
        refuse_jobs(cases, watch.watched)
    _warn(cases)
    if dry_run:
        _tell(cases, out, json_)
        raise typer.Exit
    reports = Reports(junit, json_, errors.show)
    console = open_console(stderr=reports.json_on_stdout)

    def all_cases(server: ServerProcess | None) -> Sequence[Case]:
        def one(case: Case) -> RunOutcome:
            if len(cases) > 1 and not quiet:
                console.rule(Text(case.name))
            if server:
                server.title = case.name
            if ahead:
                return ahead.next_result()
            return runner.run_scenario(case.scenario, out, quiet, console, audience=server, name=case.name)

        with RunsAhead(cases, jobs, out, quiet, console) if jobs > 1 else nullcontext() as ahead:
            # In virtual time another try is the same run again.
            return run_cases(cases, 0 if ahead else retry_inconclusive, one, errors.show, reports.write)

    if any(case.settings for case in cases) and not quiet:
        console.print(f"{len(cases)} runs, about {rough(expected_s(cases))}")
    with shown(watch) as server:
        done = all_cases(server)
        _sum_up(done, out, console, quiet)
        reports.print_json(done)
        if cell:
            _write_cell(cell, done)
        else:
            note_core()
        wait_for_the_room(server, exit_code_of(done), console.is_terminal)
    raise typer.Exit(exit_code_of(done))


def _tie(descriptor: int | None) -> None:
    if descriptor is not None:
        from mrc_testbed.testbed.launcher.tied import end_with

        end_with(descriptor)


def _warn(cases: Sequence[Case]) -> None:
    """What the machine may not carry, and what virtual time leaves out."""
    warn_of_budget((case.cell_name, case.scenario) for case in cases)
    warn_of_captures(case.scenario for case in cases)
    note_left_out(cases)


def _tell(cases: Sequence[Case], out: Path, json_: Path | None) -> None:
    """What the runs would do: in words, or as JSON where that is asked for."""
    from mrc_testbed.testbed.app.dry_run import dry_run
    from mrc_testbed.testbed.report.dry_run import dry_run_lines

    found = [dry_run(case, out) for case in cases]
    text = json.dumps(found, indent=1) if json_ else "\n".join(chain.from_iterable(map(dry_run_lines, found)))
    if json_ in (None, STANDARD_STREAM):
        say(text)
    else:
        write_asked("--json", json_, f"{text}\n")


def _require_portable(cases: Sequence[Case]) -> None:
    """The folder of a sweep may have come from elsewhere, and is believed no programs."""
    from mrc_testbed.testbed.sweep.plan import portable

    for case in cases:
        portable(case)


def _write_cell(path: Path, done: Sequence[Case]) -> None:
    from mrc_testbed.testbed.rundir.files import write_json
    from mrc_testbed.testbed.sweep.document import cell_document

    write_json(path, cell_document(done[0]))


def _sum_up(done: Sequence[Case], out: Path, console: PatientConsole, quiet: bool) -> None:
    """For several runs: the table of runs, and the comparisons of matrices."""
    from mrc_testbed.testbed.app.batch import matrices
    from mrc_testbed.testbed.report.batch import render_batch, totals

    if len(done) > 1 or len(done[0].tries) > 1:
        console.print(totals(done) if quiet else render_batch(done))
    for cells in matrices(done):
        _compare(cells, out, console, quiet)


def _compare(cells: Sequence[Case], out: Path, console: PatientConsole, quiet: bool) -> None:
    """An error here is reported, and does not change the result of the runs."""
    from mrc_testbed.testbed.app.comparison import PAGE_FILE, compare_folders
    from mrc_testbed.testbed.compare.table import show_comparison

    done = [(case.outcome.folder, case.settings) for case in cells if case.outcome and case.outcome.folder]
    if len(done) < 2:
        return
    folders, settings = zip(*done, strict=True)
    try:
        found = compare_folders(folders, out, cells=settings)
    except Exception as error:
        errors.show(error)
        return
    if not quiet:
        console.rule("comparison")
        show_comparison(found.comparison, found.sequences, console)
    console.print(f"{found.folder / PAGE_FILE}", soft_wrap=True)
    if found.error:
        errors.show(found.error)
