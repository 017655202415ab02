"""A benchmark as a folder: its cells run as a sweep, from where they ended, and what comes of them.

scenarios/<ref>.yaml    each test as a scenario
runs/                   the sweep of their cells (docs/sweeps.md)
bench.json              the results
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.bench.catalogue import DRAFT, REVISION, BenchTest
from mrc_testbed.testbed.bench.cells import BenchRequest, cases_of, runnable, scenario_file, write_scenarios
from mrc_testbed.testbed.bench.document import BENCH_FILE, FORMAT, BenchDocument, TestResult
from mrc_testbed.testbed.bench.measuring import BenchRun, measure_run, not_measured, results_of
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.errors import ExitCode, RunError, UsageError
from mrc_testbed.testbed.folders import require_own_way
from mrc_testbed.testbed.report.facts import fabric_line
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.rundir.files import write_json
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario.cells.axes import SEED
from mrc_testbed.testbed.scenario.model.matrix import VARIANT
from mrc_testbed.testbed.sweep.code import code_version
from mrc_testbed.testbed.sweep.folder import SWEEP_FILE, CellTry, SweepCell, SweepFolder
from mrc_testbed.testbed.sweep.plan import plan_sweep

SCENARIOS, RUNS = "scenarios", "runs"
_EXPECTED = ("pass", "measured")
"""Verdicts that are no anomaly."""


def planned_cases(request: BenchRequest) -> dict[str, list[Case]]:
    """The cases of each test that has runs, by its ref; nothing is left behind. Raises ScenarioError."""
    with tempfile.TemporaryDirectory(prefix="mrc-bench-") as folder:
        write_scenarios(request, Path(folder))
        return {test.ref: cases_of(test, Path(folder)) for test in runnable(request)}


def open_bench(request: BenchRequest, out: Path) -> SweepFolder:
    """The sweep of a benchmark in `out`: the one that is there, or a new one. Raises UsageError for a folder with
    something else, or with a benchmark that was asked for otherwise; RunError."""
    asked = _asked(request)
    if (out / RUNS / SWEEP_FILE).exists():
        there = SweepFolder(out / RUNS)
        if there.about.get("asked") != asked:
            raise UsageError(
                f"--out {out}: has a benchmark of other tests, transports, size or world; name a new folder"
            )
        require_own_way(out / RUNS)
        if _wanted(there) != _wanted(_planned(request)):
            raise UsageError(f"--out {out}: its cells are not those of the benchmark; name a new folder")
        return there
    strange = next(iter(_strange(out)), None)
    if strange:
        raise UsageError(f"--out {out}: has {strange.name!r} and is no benchmark; name a new folder")
    try:
        write_scenarios(request, out / SCENARIOS)
    except OSError as error:
        raise RunError(f"cannot write {error.filename or out}: {error.strerror}") from error
    cases = [case for test in runnable(request) for case in cases_of(test, out / SCENARIOS)]
    folder = plan_sweep(cases, out / RUNS, asked)
    give((out, out / SCENARIOS, *(out / SCENARIOS).iterdir()))
    return folder


def _planned(request: BenchRequest) -> SweepFolder:
    with tempfile.TemporaryDirectory(prefix="mrc-bench-") as folder:
        write_scenarios(request, Path(folder))
        cases = [case for test in runnable(request) for case in cases_of(test, Path(folder))]
        return plan_sweep(cases, Path(folder, RUNS), _asked(request))


def _wanted(folder: SweepFolder) -> list[SweepCell]:
    """What is run, wherever its scenario file lies."""
    return [replace(cell, file=Path(cell.file).name) for cell in folder.cells]


def _strange(out: Path) -> Iterator[Path]:
    """What a benchmark that was broken off while it was planned does not leave."""
    if out.exists() and not out.is_dir():
        yield out
    elif out.is_dir():
        yield from (path for path in sorted(out.iterdir()) if path.name not in (SCENARIOS, RUNS))


def _asked(request: BenchRequest) -> dict[str, Any]:
    return {
        "tests": [test.ref for test in request.tests],
        "transports": list(request.transports),
        "size": request.size.value,
        "world": request.world.value,
    }


def write_bench(request: BenchRequest, out: Path, folder: SweepFolder, left_out: Sequence[str] = ()) -> BenchDocument:
    """bench.json, of what has been run so far. Raises RunError, RecordError."""
    tests = [_result(request, test, out, folder) for test in request.tests]
    document = BenchDocument(
        format=FORMAT,
        draft=DRAFT,
        revision=REVISION,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        **code_version(),
        world=request.world,
        size=request.size,
        fabric=list(dict.fromkeys(each for test in tests for each in test.fabric)),
        transports={name: own for test in runnable(request) for name, own in request.variants(test).items()},
        environment=_environment(folder),
        tests=tests,
        left_out=list(left_out),
    )
    try:
        write_json(out / BENCH_FILE, document.model_dump(mode="json"))
    except OSError as error:
        raise RunError(f"cannot write {out / BENCH_FILE}: {error.strerror}") from error
    give((out / BENCH_FILE,))
    return document


def exit_code(folder: SweepFolder) -> ExitCode:
    """0 where every cell was measured, whatever it came to; else that of the gravest one that was not."""
    lacking = [cell for cell in folder.cells if folder.believed(cell) is None]
    return folder.exit_code(lacking) if lacking else ExitCode.PASS


def _environment(folder: SweepFolder) -> dict[str, Any]:
    machines = (one.document.get("machine") for cell in folder.cells for one in folder.tries(cell)[:1])
    return next((dict(machine) for machine in machines if machine), {})


def _result(request: BenchRequest, test: BenchTest, out: Path, folder: SweepFolder) -> TestResult:
    about: dict[str, Any] = {
        "ref": test.ref,
        "title": test.title,
        "status": test.status,
        "why": test.why,
        "deviations": [*test.deviations, *_impossible(request, test)],
    }
    mine = [cell for cell in folder.cells if Path(cell.file) == scenario_file(Path(cell.file).parent, test)]
    believed = [(cell, folder.believed(cell)) for cell in mine]
    fabrics: dict[str, None] = {}
    runs = [_run(test, cell, one, fabrics) for cell, one in believed]
    axes = {key: None for cell in mine for key in cell.settings if key not in (VARIANT, SEED)}
    return TestResult(
        **about,
        fabric=list(fabrics),
        parameters={key: list(dict.fromkeys(cell.settings[key] for cell in mine)) for key in axes},
        iterations=len({cell.seed for cell in mine}),
        kpis=results_of(test, runs),
        runs=[one.folder.relative_to(out).as_posix() for _, one in believed if one],
        anomalies=[words for cell, one in believed if (words := _anomaly(folder, cell, one))],
    )


def _impossible(request: BenchRequest, test: BenchTest) -> Iterator[str]:
    for name in request.transports if test.is_run else ():
        if why := request.why_not(test, name):
            yield f"{name} was not run: {why}"


def _run(test: BenchTest, cell: SweepCell, one: CellTry | None, fabrics: dict[str, None]) -> BenchRun:
    if one is None:
        return BenchRun(cell.settings, not_measured(test, "not run, or inconclusive"))
    record = load_record(one.folder)
    fabrics[fabric_line(record)] = None
    return BenchRun(cell.settings, measure_run(test, record))


def _anomaly(folder: SweepFolder, cell: SweepCell, one: CellTry | None) -> str:
    counts = one or next(reversed(folder.tries(cell)), None)
    named = f"{cell.name}: " + ", ".join(f"{key}={value}" for key, value in cell.settings.items())
    if counts is None:
        return f"{named}: not run"
    verdict, reason = str(counts.document["verdict"]), str(counts.document.get("reason") or "")
    return "" if one and verdict in _EXPECTED else f"{named}: {verdict}{': ' if reason else ''}{reason}"
