"""`mrc-testbed bench`: the tests of the IETF draft on AI fabrics, in virtual time or on the kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import note_core
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.bench.cells import BenchRequest
    from mrc_testbed.testbed.report.outcome import Case

_Tests = Annotated[
    str, typer.Option(metavar="REF,...", help="Only these sections of the draft, as in 5.1,9.", show_default=False)
]
_Transports = Annotated[
    str, typer.Option(metavar="NAME,...", help="Of mrc, roce-1, roce-16 and tcp; all if left out.", show_default=False)
]
_Size = Annotated[str, typer.Option(metavar="SIZE", help="small: a quarter of an hour; draft: hours.")]
_Budget = Annotated[
    str, typer.Option(metavar="TIME", help="Leave out tests that do not fit in, as in 2h.", show_default=False)
]
_Kernel = Annotated[bool, typer.Option("--kernel", help="On this kernel, as root; else in virtual time.")]
_Jobs = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="In virtual time: N cells at once; else one a core.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
_Out = Annotated[
    Path, typer.Option(metavar="DIR", help="A new folder, or that of a benchmark to go on with.", show_default=False)
]
_Place = Annotated[
    Path, typer.Argument(metavar="DIR|FILE", help="The folder of a benchmark, or a bench.json.", show_default=False)
]
_Page = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="PAGE.html", help="The page; if left out, bench.html beside bench.json."),
]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the totals alone.")]


def list_tests(json_: _AsJson = False) -> None:
    """The tests of the draft, and which of them the testbed runs.

    run: as the draft has it; adapted: with deviations, which --json lists; not-run: with the reason.
    """
    from mrc_testbed.testbed.bench.catalogue import DRAFT, REVISION, load_tests

    tests = load_tests()
    if json_:
        found = [
            test.model_dump(mode="json", include={"ref", "title", "status", "why", "deviations"}) for test in tests
        ]
        say(json.dumps({"draft": DRAFT, "revision": REVISION, "tests": found}, indent=1))
        return
    from mrc_testbed.testbed.bench.listing import shown_tests

    say(f"{DRAFT}-{REVISION}")
    for line in shown_tests(tests):
        say(line)


def plan(
    tests: _Tests = "",
    transports: _Transports = "",
    size: _Size = "small",
    budget: _Budget = "",
    kernel: _Kernel = False,
    jobs: _Jobs = None,
    json_: _AsJson = False,
) -> None:
    """How many runs a benchmark has, and about how long they take. Nothing is run."""
    request, left_out, cases = _within(_request(tests, transports, size, kernel), budget, jobs)
    taking = {ref: _taking(request, own, jobs) for ref, own in cases.items()}
    if json_:
        rows = [{"ref": ref, "runs": len(cases[ref]), "seconds": round(taking[ref])} for ref in cases]
        say(json.dumps({"tests": rows, "seconds": round(sum(taking.values())), "left_out": left_out}, indent=1))
        return
    from mrc_testbed.testbed.bench.listing import plan_lines

    for line in plan_lines(request, {ref: len(own) for ref, own in cases.items()}, taking, left_out):
        say(line)


def run(
    out: _Out,
    tests: _Tests = "",
    transports: _Transports = "",
    size: _Size = "small",
    budget: _Budget = "",
    kernel: _Kernel = False,
    jobs: _Jobs = None,
    quiet: _Quiet = False,
) -> None:
    """Run the tests and write DIR/bench.json and bench.html. The same command goes on where it ended.

    Results are measurements, never pass or fail. Exit status: 0 when every cell was measured, 3 if some were not, 130
    when interrupted.
    """
    from mrc_testbed.testbed.bench.document import BENCH_FILE
    from mrc_testbed.testbed.bench.page import PAGE_FILE, write_page
    from mrc_testbed.testbed.bench.running import exit_code, open_bench, write_bench
    from mrc_testbed.testbed.report.console import open_console
    from mrc_testbed.testbed.sweep.drive import DriveLimits, drive
    from mrc_testbed.testbed.sweep.engine_local import LocalEngine
    from mrc_testbed.testbed.sweep.evidence import EVIDENCE
    from mrc_testbed.testbed.sweep.progress import SweepLine

    request, left_out, cases = _within(_request(tests, transports, size, kernel), budget, jobs)
    if not cases:
        raise UsageError("nothing is left to run: all tests are not run, or beyond the budget")
    folder = open_bench(request, out)
    folder.require_version()
    note_core()
    console = open_console()
    limits = DriveLimits(2, EVIDENCE, ())
    with folder.owned(), SweepLine(console, quiet) as line:
        progress = drive(folder, folder.cells, LocalEngine(_at_once(jobs)), limits, line)
    document = write_bench(request, out, folder, left_out)
    write_page(document, out / PAGE_FILE, f"mrc-testbed bench page {out}")
    left = sum(folder.believed(cell) is None for cell in folder.cells)
    console.print(f"{len(folder.cells) - left} of {len(folder.cells)} cells measured", soft_wrap=True)
    if left:
        console.print(f"{left} are not: the same command goes on", soft_wrap=True)
    console.print(f"{out / BENCH_FILE}, {out / PAGE_FILE}", soft_wrap=True)
    raise typer.Exit(ExitCode.INTERRUPTED if progress.interrupted else exit_code(folder))


def page(place: _Place, output: _Page = None) -> None:
    """Make the page of a benchmark again from its bench.json, which may be of another machine."""
    from mrc_testbed.testbed.bench.document import read_bench
    from mrc_testbed.testbed.bench.page import PAGE_FILE, write_page

    document = read_bench(place)
    target = output or (place.parent if place.is_file() else place) / PAGE_FILE
    if target.suffix != ".html":
        raise UsageError(f"-o {target}: must end in .html, as in mine/{PAGE_FILE}")
    write_page(document, target, f"mrc-testbed bench page {place}")
    say(f"{target}")


def _request(tests: str, transports: str, size: str, kernel: bool) -> BenchRequest:
    """Raises UsageError."""
    from mrc_testbed.testbed.bench.catalogue import BenchSize, load_tests, sections_named
    from mrc_testbed.testbed.bench.cells import BenchRequest, transports_named
    from mrc_testbed.testbed.scenario.model.transports import WorldKind

    if size not in list(BenchSize):
        raise UsageError(f"--size {size}: must be one of {', '.join(BenchSize)}")
    world = WorldKind.KERNEL if kernel else WorldKind.VIRTUAL
    return BenchRequest(sections_named(load_tests(), tests), transports_named(transports), BenchSize(size), world)


def _within(
    request: BenchRequest, budget: str, jobs: int | None
) -> tuple[BenchRequest, list[str], dict[str, list[Case]]]:
    """The request without what the budget leaves no time for, the refs of that, and the cases of the rest."""
    from mrc_testbed.testbed.bench.cells import beyond_budget
    from mrc_testbed.testbed.bench.running import planned_cases

    cases = planned_cases(request)
    left_out: list[str] = []
    if budget:
        taking = {ref: _taking(request, own, jobs) for ref, own in cases.items()}
        left_out = beyond_budget(taking, _seconds(budget))
    kept = tuple(test for test in request.tests if test.ref not in left_out)
    return replace(request, tests=kept), left_out, {ref: own for ref, own in cases.items() if ref not in left_out}


def _taking(request: BenchRequest, cases: list[Case], jobs: int | None) -> float:
    from mrc_testbed.testbed.bench.cells import wall_s

    return wall_s(cases, _at_once(jobs), request.world)


def _at_once(jobs: int | None) -> int:
    return jobs or usable_cpus()


def _seconds(budget: str) -> float:
    from mrc_testbed.testbed.scenario.text.units import DURATION

    try:
        return DURATION.parse(budget) / 1e9
    except ValueError as error:
        raise UsageError(f"--budget {budget}: {error}") from None
