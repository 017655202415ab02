"""`mrc-testbed sweep`: more runs than one machine can do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrc_testbed.testbed.commands import errors
from mrc_testbed.testbed.commands.options import (
    Against,
    CasesOption,
    Certs,
    Insecure,
    Matrix,
    On,
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
)
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrc_testbed.testbed.report.console import PatientConsole
    from mrc_testbed.testbed.sweep.drive import DriveLimits
    from mrc_testbed.testbed.sweep.engine import Engine
    from mrc_testbed.testbed.sweep.folder import SweepCell, SweepFolder
    from mrc_testbed.testbed.sweep.gather import Gathered

_Folder = Annotated[
    Path, typer.Argument(metavar="SWEEP", help="The folder that `sweep plan` wrote.", show_default=False)
]
_More = Annotated[
    list[Path] | None,
    typer.Argument(metavar="MORE...", help="Copies of it with other cells, as of the jobs of a workflow."),
]
_Out = Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the sweep.", show_default=False)]
_Repeat = Annotated[int, typer.Option(metavar="N", min=1, help="Each scenario N times.")]
_VarySeed = Annotated[bool, typer.Option("--vary-seed", help="With --repeat: seed, seed + 1, seed + 2 ...")]
_Many = Annotated[bool, typer.Option("--many", help="Allow more than 100 runs of a matrix.")]
_Retry = Annotated[
    int,
    typer.Option(
        "--retry-inconclusive",
        metavar="N",
        min=0,
        help="Retry a cell that a machine spoiled up to N times, on another one; a fail is never retried.",
    ),
]
_Fetch = Annotated[str, typer.Option(metavar="WHAT", help="Of each run: summary, evidence (all but captures) or all.")]
_Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Here, in virtual time: N cells at once; else one a core."),
]
_Command = Annotated[str, typer.Option(hidden=True, help="Run cells by this command in place of `mrc-testbed run`.")]
_Index = Annotated[int, typer.Option(metavar="I", help="Which share, from 0 on.", show_default=False)]
_Of = Annotated[int, typer.Option(metavar="N", min=1, help="Of how many shares.", show_default=False)]
_Shares = Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="N jobs at most.")]
_Mixed = Annotated[bool, typer.Option("--mixed", help="Gather cells of other sweeps and of several versions, too.")]
_Tables = Annotated[
    str,
    typer.Option(
        metavar="NAME,...", help="Frames of all runs as tables too, as in steps,recovery.", show_default=False
    ),
]
_Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML to this file.", show_default=False)]
_Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write all verdicts as JSON to this file; - for standard output."),
]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the totals alone.")]


def plan(
    scenarios: ScenarioFiles,
    out: _Out,
    set_: Set = None,
    seed: Seed = None,
    matrix: Matrix = None,
    variants: Variants = "",
    against: Against = "",
    cases_: CasesOption = "",
    virtual: Virtual = False,
    scale: ScaleOption = "",
    repeat: _Repeat = 1,
    vary_seed: _VarySeed = False,
    many: _Many = False,
) -> None:
    """Write the folder of a sweep: which runs it has. Nothing is run.

    All mistakes in all cells are reported here. docs/sweeps.md goes on from there.
    """
    from mrc_testbed.testbed.app.batch import Repetitions, load_cases
    from mrc_testbed.testbed.app.pack import expected_s, rough
    from mrc_testbed.testbed.sweep.plan import plan_sweep

    sweep = sweep_of(matrix, variants, against, cases_)
    cases = load_cases(scenarios, in_world(set_, virtual, scale), seed, Repetitions(repeat, vary_seed, many), sweep)
    note_left_out(cases)
    asked: dict[str, Any] = {
        "scenarios": [str(file) for file in scenarios],
        "set": in_world(set_, virtual, scale),
        "seed": seed,
    }
    asked |= {"matrix": list(matrix or ()), "variants": variants, "against": against, "cases": cases_}
    folder = plan_sweep(cases, out, {**asked, "repeat": repeat, "vary_seed": vary_seed})
    on_kernel = [case for case, cell in zip(cases, folder.cells, strict=True) if cell.on_kernel]
    where = "on one kernel" if on_kernel else "of a core at most, in virtual time"
    about = f", about {rough(expected_s(on_kernel or cases))} {where}"
    say(f"{out}: {len(cases)} cells{about}; next: mrc-testbed sweep run {out}")


def run(
    folder: _Folder,
    on: On = "local",
    certs: Certs = Path("certs"),
    insecure: Insecure = False,
    retry_inconclusive: _Retry = 2,
    fetch: _Fetch = "evidence",
    jobs: _Jobs = None,
    cell_command: _Command = "",
    quiet: _Quiet = False,
) -> None:
    """Run all cells of a sweep that nothing is believed of yet, on this machine or on the workers of a scheduler.

    Exit status as of several runs; 4 too where the engine cannot be used.
    """
    from mrc_testbed.testbed.sweep.folder import SweepFolder

    sweep = SweepFolder(folder)
    sweep.require_own()
    limits = _limits(retry_inconclusive, fetch, cell_command)
    _carry_out(sweep, sweep.cells, _engine(on, certs, insecure, jobs, sweep), limits, quiet, owned=True)


def cell(
    folder: _Folder,
    index: _Index,
    of: _Of,
    retry_inconclusive: _Retry = 2,
    fetch: _Fetch = "evidence",
    jobs: _Jobs = None,
    cell_command: _Command = "",
    quiet: _Quiet = False,
) -> None:
    """Run one share of a sweep here, as a task of a SLURM array or a job of a workflow.

    The same share always has the same cells, and each cell is in one share. Exit status as of several runs; 0 for a
    share without cells.
    """
    from mrc_testbed.testbed.sweep.folder import SweepFolder
    from mrc_testbed.testbed.sweep.share import share_of

    sweep = SweepFolder(folder)
    sweep.require_own()
    cells = share_of(sweep.cells, index, of)
    if not cells:  # as where an array has more tasks than the sweep has cells: nothing of it is open
        say(f"share {index} of {of} has no cells")
        return
    limits = _limits(retry_inconclusive, fetch, cell_command)
    _carry_out(sweep, cells, _local(jobs), limits, quiet, owned=False)


def matrix(folder: _Folder, jobs: _Shares = 20) -> None:
    """Print the shares of a sweep as JSON, for `strategy: matrix: ${{ fromJSON(...) }}` of a GitHub workflow."""
    from mrc_testbed.testbed.sweep.folder import SweepFolder
    from mrc_testbed.testbed.sweep.share import job_matrix

    say(json.dumps(job_matrix(len(SweepFolder(folder).cells), jobs)))


def gather(
    folder: _Folder,
    more: _More = None,
    mixed: _Mixed = False,
    tables: _Tables = "",
    junit: _Junit = None,
    json_: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Bring all cells together: verdicts, comparisons and tables, in the folder of the sweep.

    Exit status as of several runs; a cell that was not run is inconclusive.
    """
    from mrc_testbed.testbed.folders import require_own_way
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.sweep import gather as gathering
    from mrc_testbed.testbed.sweep.tables import EXTRA, has_parquet, table_names, without_evidence, write_tables

    names = table_names(tables)
    require_own_way(folder)
    found = gathering.gather(folder, more or (), mixed)
    lacking = without_evidence(found) if names else 0
    console = open_console(stderr=json_ == Path("-"))
    for file in gathering.matrix_files(found):
        _compare(found, file, console, quiet)
    _write_reports(found, junit, json_)
    for path in write_tables(found, names):
        console.print(f"{path}", soft_wrap=True)
    if not has_parquet():
        say(f"note: tables are CSV; for parquet: {EXTRA}", err=True)
    if lacking:
        say(f"note: {lacking} runs came without their evidence, and are in sweep alone of these tables", err=True)
    _list_what_did_not_pass(found, console)
    raise typer.Exit(found.exit_code)


def keys(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the keys.", show_default=False)],
    days: Annotated[int, typer.Option(metavar="N", min=1, help="How long they are good for.")] = 30,
) -> None:
    """Make a certificate authority and a key pair, for schedulers and workers that talk by TLS. Needs openssl.

    Copy the folder to every machine yourself, by a way that you trust: who has it is root on every worker.
    """
    from mrc_testbed.testbed.sweep.keys import make_keys

    for path in make_keys(out, days):
        say(f"{path}")


def _limits(retries: int, fetch: str, command: str) -> DriveLimits:
    import shlex

    from mrc_testbed.testbed.sweep.drive import DriveLimits
    from mrc_testbed.testbed.sweep.evidence import FETCHES

    if fetch not in FETCHES:
        raise UsageError(f"--fetch {fetch}: must be one of {', '.join(FETCHES)}")
    return DriveLimits(retries, fetch, tuple(shlex.split(command)))


def _local(jobs: int | None) -> Engine:

    from mrc_testbed.testbed.sweep.engine_local import LocalEngine

    note_core()
    return LocalEngine(jobs or usable_cpus())


def _engine(on: str, certs: Path, insecure: bool, jobs: int | None, sweep: SweepFolder) -> Engine:
    if on == "local":
        return _local(jobs)
    if jobs:
        raise UsageError("--jobs: is for --on local; a worker runs as many cells as it has threads (--nthreads)")
    from mrc_testbed.testbed.sweep.address import scheduler_address
    from mrc_testbed.testbed.sweep.engine_dask import DaskEngine

    return DaskEngine(scheduler_address(on, certs, insecure), sweep)


def _carry_out(
    sweep: SweepFolder, cells: Sequence[SweepCell], engine: Engine, limits: DriveLimits, quiet: bool, owned: bool
) -> None:
    """`owned`: nobody else runs cells of this folder."""
    from contextlib import nullcontext

    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.sweep.drive import drive
    from mrc_testbed.testbed.sweep.progress import SweepLine

    sweep.require_version()
    console = open_console()
    with sweep.owned() if owned else nullcontext(), SweepLine(console, quiet) as line:
        progress = drive(sweep, cells, engine, limits, line)
    left = sum(sweep.believed(cell) is None for cell in cells)
    told = f"{len(cells) - left} of {len(cells)} cells settled, {progress.tries} tries"
    more = f"; {left} open: the same command goes on" if left else f"; next: mrc-testbed sweep gather {sweep.path}"
    console.print(told + more, soft_wrap=True)
    raise typer.Exit(ExitCode.INTERRUPTED if progress.interrupted else sweep.exit_code(cells))


def _compare(found: Gathered, file: str, console: PatientConsole, quiet: bool) -> None:
    """An error here is reported, and does not change the result of the runs."""
    from mrc_testbed.testbed.app.comparison import PAGE_FILE
    from mrc_testbed.testbed.compare.table import show_comparison
    from mrc_testbed.testbed.sweep.gather import compare_cells

    try:
        made = compare_cells(found, file)
    except Exception as error:
        errors.show(error)
        return
    if made and not quiet:
        show_comparison(made.comparison, None, console)
    if made:
        console.print(f"{made.folder / PAGE_FILE}", soft_wrap=True)
    if made and made.error:
        errors.show(made.error)


def _write_reports(found: Gathered, junit: Path | None, json_: Path | None) -> None:
    if junit is None and json_ is None:
        return
    from mrc_testbed.testbed.app.reports import Reports
    from mrc_testbed.testbed.sweep.gather import Cases

    reports, cases = Reports(junit, json_, errors.show), Cases(found).all()
    reports.write(cases)
    reports.print_json(cases)


def _list_what_did_not_pass(found: Gathered, console: PatientConsole) -> None:
    for cell in found.cells:
        if cell.exit_code is not ExitCode.PASS:
            last = cell.believed or (cell.tries[-1] if cell.tries else None)
            about = f"{last.document.get('reason', '')}  {last.folder}" if last else ""
            console.print(f"{cell.word}  {cell.cell.name}  {about}".rstrip(), soft_wrap=True)
    console.print(found.totals, soft_wrap=True)
