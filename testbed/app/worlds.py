"""Scenarios in both worlds: what is not there yet is run, then both are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mrc_testbed.testbed.app.batch import load_cases
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run, load_runs
from mrc_testbed.testbed.compare.worlds import Agreement, Twin, agreement, in_world, names_of, twin_of
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.planned import recorded_scenario
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.cells.axes import NO_SWEEP, Sweep
from mrc_testbed.testbed.scenario.model.transports import WorldKind

RunIt = Callable[[Scenario, Path | None], RunOutcome]
"""Run a scenario; the folder whose schedule it replays, if any."""
_KERNEL = f"world={WorldKind.KERNEL.value}"


@dataclass(frozen=True)
class Pair:
    """A scenario, or a cell of one, and its runs that are there. `scenario`: for the kernel, None where that was
    run."""

    name: str
    runs: tuple[ComparedRun, ...] = ()
    scenario: Scenario | None = None


def pairs_of_runs(folders: Sequence[Path]) -> list[Pair]:
    """Runs that did the same, in whichever world, together. Raises UsageError for kernel TCP."""
    twins: dict[Twin, list[ComparedRun]] = {}
    for run in load_runs(folders):
        scenario = run.record.scenario
        if scenario.transport.of_kernel:
            raise UsageError(f"{run.folder}: speaks the kernel's TCP, which virtual time does not have")
        twins.setdefault(twin_of(scenario), []).append(run)
    names = names_of({twin: runs[0].record.scenario for twin, runs in twins.items()})
    return [Pair(names[twin], tuple(runs)) for twin, runs in twins.items()]


def pairs_of_scenarios(
    files: Sequence[Path], overrides: Sequence[str], seed: int | None, sweep: Sweep = NO_SWEEP
) -> tuple[list[Pair], list[str]]:
    """Each scenario, cell by cell; and the names of cells left out, which speak the kernel's TCP.

    Raises ScenarioError; UsageError where nothing is left.
    """
    cases = load_cases(files, [*overrides, _KERNEL], seed, sweep=sweep)
    kept = [case for case in cases if not case.scenario.transport.of_kernel]
    if not kept:
        raise UsageError(f"{cases[0].file}: speaks the kernel's TCP, which virtual time does not have")
    if mine := next((case for case in kept if case.scenario.job.programs), None):
        raise UsageError(f"{mine.file}: has programs, which virtual time cannot run")
    left = [case.cell_name for case in cases if case not in kept]
    return [Pair(case.cell_name, scenario=case.scenario) for case in kept], left


def completed(pair: Pair, run: RunIt, retries: int) -> Agreement:
    """Run what is not there, and compare. A run that the machine spoiled is tried again, `retries` times at most; one
    that stays inconclusive is not replayed.

    Raises TestbedError for what keeps a run from beginning, KeyboardInterrupt when one was interrupted.
    """
    runs = list(pair.runs)
    if pair.scenario is not None:
        runs.append(_conclusive(pair.scenario, None, run, retries))
    source = next((each.folder for each in runs if each.believed), None)
    for world in WorldKind:
        if source is not None and not in_world(runs, world):
            twin = recorded_scenario(source, virtual=world is WorldKind.VIRTUAL)
            runs.append(_conclusive(twin, source, run, retries))
    return replace(agreement(runs), name=pair.name)


def _conclusive(scenario: Scenario, replays: Path | None, run: RunIt, retries: int) -> ComparedRun:
    for _ in range(1 + retries):
        outcome = run(scenario, replays)
        if outcome.stopped:
            raise KeyboardInterrupt
        if not outcome.worth_another_try:
            break
    if outcome.folder is None:
        raise RunError(outcome.reason)
    return load_run(outcome.folder)
