"""Which emulated runs the planner may take recovery and stalls from: those that were believed, and broke something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run
from mrc_testbed.testbed.compare.waits import waits_of
from mrc_testbed.testbed.errors import TestbedError, UsageError
from mrc_testbed.testbed.planner.arithmetic.bridge import MeasuredWaits
from mrc_testbed.testbed.rundir.files import read_json
from mrc_testbed.testbed.rundir.ownership import is_running
from mrc_testbed.testbed.rundir.results import COMPARE_FILE, RESULTS, is_comparison, run_folder, run_folders

OPTION = "--measured"
_NOBODY_WAITED = "no path was left and no QP stalled because of a fault"


def measured_waits(names: Sequence[Path], out: Path = RESULTS) -> tuple[list[MeasuredWaits], list[str]]:
    """The waits of each transport in these runs, and a line for each run that is left out.

    A name is that of a run, which must be usable, or of a folder of runs or a comparison, where one run must be.
    Raises UsageError.
    """
    runs: dict[Path, ComparedRun] = {}
    left_out: list[str] = []
    for name in names:
        found, notes = _usable(name, out)
        runs |= {run.folder.resolve(): run for run in found}
        left_out += notes
    waits = waits_of(list(runs.values()))
    told = {name for each in waits for name in each.runs}
    idle = [f"{OPTION} {run.folder}: {_NOBODY_WAITED}" for run in runs.values() if run.folder.name not in told]
    if not waits:
        raise UsageError(idle[0])
    return waits, [*left_out, *(f"{line}; left out" for line in idle)]


def _usable(name: Path, out: Path) -> tuple[list[ComparedRun], list[str]]:
    """The runs that `name` means, and why others of them are left out. Raises UsageError."""
    found, refused = [], []
    for folder in _folders(name, out):
        try:
            found.append(_run(folder))
        except UsageError as error:
            refused.append(str(error))
    if not found:
        raise UsageError(refused[0])
    return found, [f"{line}; left out" for line in refused]


def _folders(name: Path, out: Path) -> list[Path]:
    """One run, or those of a comparison or of a folder of runs."""
    for place in (name, out / name):
        if is_comparison(place):
            return _compared(place)
    batch = run_folders(name) if name.is_dir() else []
    if batch:
        return batch
    try:
        return [run_folder(name, out)]
    except UsageError as error:
        raise UsageError(f"{OPTION} {error}") from None


def _compared(folder: Path) -> list[Path]:
    """The runs of a comparison: beside it, or where they were when it was made."""
    document = read_json(folder / COMPARE_FILE) or {}
    try:
        named = [Path(run["folder"]) for run in document["runs"]]
    except (KeyError, TypeError):
        raise UsageError(f"{OPTION} {folder / COMPARE_FILE}: cannot be read") from None
    beside = [folder.parent / each.name for each in named]
    return [near if near.is_dir() else each for near, each in zip(beside, named, strict=True)]


def _run(folder: Path) -> ComparedRun:
    """Raises UsageError, in one line, for a run that says nothing about recovery."""
    if is_running(folder):
        raise UsageError(f"{OPTION} {folder}: is still running")
    try:
        run = load_run(folder)
    except TestbedError as error:
        raise UsageError(f"{OPTION} {str(error).splitlines()[0]}") from None
    if why := _useless(run):
        raise UsageError(f"{OPTION} {folder}: {why}")
    return run


def _useless(run: ComparedRun) -> str:
    """Why nothing can be taken from it; empty if something can."""
    record, verdict = run.record, run.verdict
    if record.interrupted and not record.ended_by_machine:
        return f"it did not end by itself: {record.interrupted}"
    if not verdict.fidelity.ok:
        return f"the machine did not keep time: {causes_of_machine(verdict.fidelity)[0].said}"
    if record.death:
        return f"its {verdict.death}: that costs a restart, and a stall without an end has no length"
    if not record.workload_done:
        return "its workload did not come to its end"
    if not run.believed:
        return f"it is inconclusive: {verdict.reason}"
    return "" if outages(record) else "nothing broke in it, so there is nothing to recover from"
