"""Several scenarios, one run after the other. What each came to is told as it becomes known; a stop ends them all."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from testbed.errors import ExitCode, Problem, ScenarioError
from testbed.report.outcome import Case, RunOutcome
from testbed.scenario import load_scenario

Run = Callable[[Case], RunOutcome]
"""One run of a case. May raise: TestbedError for what keeps it from beginning, anything else is a mistake of ours."""
Tell = Callable[[Exception], ExitCode]
"""Tells an error to the user and returns the exit code that it stands for."""
_STOPPING = (signal.SIGTERM, signal.SIGHUP)


def load_cases(
    files: Sequence[Path], overrides: Sequence[str], seed: int | None, repeat: int, vary_seed: bool
) -> list[Case]:
    """`repeat` cases of each file; with `vary_seed` each has a seed one higher than the one before.

    Raises ScenarioError with the mistakes of all files.
    """
    cases: list[Case] = []
    problems: list[Problem] = []
    for file in files:
        try:
            first = load_scenario(file, overrides, seed)
            for number in range(repeat):
                scenario = load_scenario(file, overrides, first.seed + number) if vary_seed and number else first
                cases.append(Case(file, scenario, number + 1, repeat))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))
    return cases


def run_cases(
    cases: Sequence[Case], retries: int, run: Run, tell: Tell, known: Callable[[Sequence[Case]], None]
) -> Sequence[Case]:
    """Run each case, and again up to `retries` times while it is inconclusive: never after a fail.

    `known` gets all cases, first before anything runs and then after each try, for reports that are whole at any time.
    After an interruption nothing more begins; what is left has no tries.
    """
    done = list(cases)
    known(done)
    with _stopping_as_ctrl_c():
        for index in range(len(done)):
            for _ in range(1 + retries):
                outcome = _attempt(done[index], run, tell)
                done[index] = replace(done[index], tries=(*done[index].tries, outcome))
                known(done)
                if outcome.exit_code is not ExitCode.INCONCLUSIVE:
                    break
            if outcome.exit_code is ExitCode.INTERRUPTED:
                break
    return done


def _attempt(case: Case, run: Run, tell: Tell) -> RunOutcome:
    began = time.monotonic()
    try:
        return run(case)
    except KeyboardInterrupt as stop:
        code, reason = ExitCode.INTERRUPTED, f"interrupted by {stop}".removesuffix(" by ")
    except Exception as error:
        code, reason = tell(error), str(error)
    return RunOutcome(code, time.monotonic() - began, error=reason)


@contextmanager
def _stopping_as_ctrl_c() -> Iterator[None]:
    """Between runs, too, a CI system that ends the job gets the summary and the reports."""

    def stop(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
