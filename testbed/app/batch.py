"""Several scenarios, one run after the other. What each came to is told as it becomes known; a stop ends them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mrc_testbed.testbed.errors import ExitCode, Problem, ScenarioError, UsageError, was_interrupted
from mrc_testbed.testbed.interrupts import stopping_as_ctrl_c, unwrapped
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.scenario import Cell, load_cells
from mrc_testbed.testbed.scenario.cells.axes import NO_SWEEP, Sweep
from mrc_testbed.testbed.scenario.cells.cells import MOST_CELLS

RunCase = Callable[[Case], RunOutcome]
"""One run of a case. May raise: TestbedError for what keeps it from beginning, anything else is a mistake of ours."""
OnError = Callable[[Exception], ExitCode]
"""Shows an error to the user and returns its exit code."""
MOST_RUNS = 100
"""Of one matrix, without `--many`: an hour, and easily asked for by mistake."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often each scenario, or each cell of its matrix, is run. `vary_seed`: each time with a seed one higher than
    before. `many`: more than MOST_RUNS of a matrix are meant."""

    repeat: int = 1
    vary_seed: bool = False
    many: bool = False


ONCE = Repetitions()


def load_cases(
    files: Sequence[Path],
    overrides: Sequence[str] = (),
    seed: int | None = None,
    times: Repetitions = ONCE,
    sweep: Sweep = NO_SWEEP,
) -> list[Case]:
    """The cases of each file. Those of a matrix or of variants come in rounds, in each every cell once and every other
    one backwards: a machine that grows slower over the hours then does so for all cells alike.

    Raises ScenarioError with the mistakes of all files; UsageError for more than MOST_RUNS of a matrix.
    """
    cases: list[Case] = []
    problems: list[Problem] = []
    for file in files:
        try:
            cases += _in_rounds(file, list(_rounds(file, overrides, seed, times, sweep)), times)
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))
    return cases


def _rounds(
    file: Path, overrides: Sequence[str], seed: int | None, times: Repetitions, sweep: Sweep
) -> Iterator[tuple[int, list[Cell]]]:
    """The number of the repetition, and the cells of one seed."""
    cells = load_cells(file, overrides, seed, sweep, MOST_CELLS if times.many else MOST_RUNS)
    if len(cells) > 1 and len(cells) * times.repeat > MOST_RUNS and not times.many:
        runs = f"{len(cells)} cells, {times.repeat} times each, are {len(cells) * times.repeat} runs"
        raise UsageError(f"{file}: {runs}; for more than {MOST_RUNS} use --many")
    seeds = list(dict.fromkeys(cell.scenario.seed for cell in cells))
    if times.vary_seed and len(seeds) > 1:
        raise UsageError(f"{file}: --vary-seed: its matrix varies the seed itself")
    for number in range(times.repeat):
        if times.vary_seed and number:
            cells = load_cells(file, overrides, seeds[0] + number, sweep)
        for one in dict.fromkeys(cell.scenario.seed for cell in cells):
            yield number + 1, [cell for cell in cells if cell.scenario.seed == one]


def _in_rounds(file: Path, rounds: Sequence[tuple[int, list[Cell]]], times: Repetitions) -> Iterator[Case]:
    for turn, (number, cells) in enumerate(rounds):
        for cell in cells[::-1] if turn % 2 else cells:
            yield Case(file, cell.scenario, number, times.repeat, settings=cell.settings)


def run_cases(
    cases: Sequence[Case], retries: int, run: RunCase, on_error: OnError, known: Callable[[Sequence[Case]], None]
) -> Sequence[Case]:
    """Run each case, and again up to `retries` times while the machine spoils it: never after a fail, nor where another
    try would lack the same data.

    `known` gets all cases, first before anything runs and then after each try, for reports that are whole at any time.
    After an interruption nothing more begins; what is left has no tries.
    """
    done = list(cases)
    known(done)
    with stopping_as_ctrl_c():
        for index in range(len(done)):
            for _ in range(1 + retries):
                outcome = _attempt(done[index], run, on_error)
                done[index] = replace(done[index], tries=(*done[index].tries, outcome))
                known(done)
                if not outcome.worth_another_try:
                    break
            if outcome.stopped:
                break
    return done


def matrices(cases: Sequence[Case]) -> list[list[Case]]:
    """The cells of each file that has a matrix, in the order in which they were run."""
    found: dict[Path, list[Case]] = {}
    for case in cases:
        if case.settings:
            found.setdefault(case.file, []).append(case)
    return list(found.values())


def _attempt(case: Case, run: RunCase, on_error: OnError) -> RunOutcome:
    began = time.monotonic()
    try:
        with unwrapped():
            return run(case)
    except KeyboardInterrupt as stop:
        code, reason = ExitCode.INTERRUPTED, f"interrupted by {stop}".removesuffix(" by ")
    except Exception as error:
        interrupted = was_interrupted(error)
        code, reason = (ExitCode.INTERRUPTED, "interrupted") if interrupted else (on_error(error), str(error))
    return RunOutcome(code, time.monotonic() - began, error=reason)
