"""The endpoint in C of docs/examples passes all steps: the page of the contract says enough."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.testbed.interop.results import StepMark
from mrc_testbed.testbed.interop.steps import STEPS, ContractStep
from tests.unit.interop.judged import judged

SOURCE = Path(__file__).parents[3] / "docs/examples/contract/endpoint.c"
PATIENT_S = 30.0


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("endpoint") / "endpoint"
    subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE], check=True)
    return str(program)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.word)
def test_it_passes(tmp_path: Path, endpoint: str, step: ContractStep) -> None:
    result = judged(tmp_path, (endpoint,), step.number, answer_s=PATIENT_S)
    assert (result.mark, result.reasons) == (StepMark.PASS, ())
