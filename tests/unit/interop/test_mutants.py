"""Our endpoint passes each step, and with one thing wrong it fails at the step that asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.interop.entries import ours
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.interop.results import StepMark
from mrc_testbed.testbed.interop.steps import STEPS, ContractStep
from tests.unit.interop.judged import judged, python
from tests.unit.interop.mutants import MUTANTS

PATIENT_S = 30.0
"""For answers of a program that is right: a busy machine may keep it waiting."""


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.word)
def test_our_endpoint_passes(tmp_path: Path, step: ContractStep) -> None:
    result = judged(tmp_path, ours().command, step.number, answer_s=PATIENT_S)
    assert (result.mark, result.reasons) == (StepMark.PASS, ())


@pytest.mark.parametrize("role", [Role.SENDER, Role.RECEIVER])
def test_a_role_asks_for_its_half(tmp_path: Path, role: Role) -> None:
    for number in (3, 5, 6, 7):
        result = judged(tmp_path, ours().command, number, role=role, answer_s=PATIENT_S)
        assert (result.mark, result.reasons) == (StepMark.PASS, ())
    assert (tmp_path / "subject" / "silence").exists() is (role is Role.SENDER)


def test_a_step_without_a_run_for_the_role_is_no_pass(tmp_path: Path) -> None:
    result = judged(tmp_path, ours().command, 8, role=Role.SENDER)
    assert (result.mark, result.reasons) == (StepMark.NOT_APPLICABLE, ("nothing in it is for the role sender",))


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.nightly(keep=len(STEPS))
def test_a_mutant_fails_at_its_step(tmp_path: Path, name: str) -> None:
    mutant = MUTANTS[name]
    patience_s = 1.0 if mutant.silent else PATIENT_S
    result = judged(tmp_path, python("mutants.py", name), mutant.step, mutant.run, answer_s=patience_s)
    assert result.mark is StepMark.FAIL
    assert any(mutant.why in reason for reason in result.reasons), result.reasons


def test_there_are_mutants_of_each_step() -> None:
    assert {mutant.step for mutant in MUTANTS.values()} == {step.number for step in STEPS}
    assert len(MUTANTS) >= 20
