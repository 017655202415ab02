"""A program of the tests through a step."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from mrc_testbed.testbed.interop.entries import ListedProgram
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.interop.judging import Judging
from mrc_testbed.testbed.interop.results import StepResult
from mrc_testbed.testbed.interop.steps import STEPS

HERE = Path(__file__).parent
ANSWER_S = 2.0


def judged(
    place: Path, command: tuple[str, ...], step: int, run: str = "", role: Role = Role.BOTH, answer_s: float = ANSWER_S
) -> StepResult:
    """`run`: only this run of the step."""
    wanted = STEPS[step - 1]
    if run:
        wanted = replace(wanted, runs=tuple(each for each in wanted.runs if each.word == run))
        assert wanted.runs
    return Judging(ListedProgram("subject", command, HERE, role), place / "subject", answer_s).step(wanted)


def python(file: str, *words: str) -> tuple[str, ...]:
    """The command of a file beside this one."""
    return sys.executable, str(HERE / file), *words
