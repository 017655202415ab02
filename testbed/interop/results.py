"""What a step, and all steps of a row, came to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from mrc_testbed.testbed.interop.entries import Listed
from mrc_testbed.testbed.interop.steps import ContractStep


class StepMark(StrEnum):
    """What a step came to."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True)
class StepResult:
    """Of one step. `reasons`: of a fail or n/a. `folders`: its runs, below the folder of the matrix."""

    step: ContractStep
    mark: StepMark
    reasons: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Of one row of the list. `says`: the name that a program gave itself, empty if it gave none. `notes`: what else a
    person should know of it."""

    entry: Listed
    says: str
    results: tuple[StepResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Some step failed."""
        return any(result.mark is StepMark.FAIL for result in self.results)


def judge_each(
    steps: Iterable[ContractStep], judge: Callable[[ContractStep], StepResult], told: Callable[[StepResult], None]
) -> tuple[StepResult, ...]:
    """Judge all steps; each is told when it is over."""
    results = []
    for step in steps:
        result = judge(step)
        told(result)
        results.append(result)
    return tuple(results)
