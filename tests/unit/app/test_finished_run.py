from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from mrc_testbed.testbed.app.finished import FinishedRun, Unknown
from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.report.outcome import RunOutcome
from tests.unit.checks.test_folder import RunFolder


def finished(folder: RunFolder, tmp_path: Path) -> FinishedRun:
    return FinishedRun(judge_folder(folder.write(tmp_path), Console(quiet=True), quiet=True))


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return finished(RunFolder(expect=["qp_errors == 0"]), tmp_path)


def test_verdict_folder_and_reason(run: FinishedRun, tmp_path: Path) -> None:
    assert (run.verdict, run.passed, run.reason, run.folder) == ("pass", True, "", tmp_path)
    assert (tmp_path / "junit.xml").exists()


@pytest.mark.parametrize(
    ("text", "unit", "value", "shown"),
    [
        ("qp_errors", None, 0, "0"),
        ("step_time.p100", None, 1.2, "1.2 s"),
        ("step_time.p100 during cut", None, 1.2, "1.2 s"),
        ("step_time.p100 during faults", "ms", 1200, "1200 ms"),
        ("  step_time.median   clean ", None, 1.0, "1 s"),
        ("step_time.max from 0s to 2100ms", None, 1.0, "1 s"),
        ("step_time.p100", "rtt", 48, "48 rtt"),
        ("bytes_wrong", None, 0, "0 B"),
        ("steps_done", None, 8, "8"),
    ],
)
def test_figures_in_the_words_of_expectations(
    run: FinishedRun, text: str, unit: str | None, value: float, shown: str
) -> None:
    found = run.metric(text, unit)
    assert found == pytest.approx(value)
    assert str(found) == shown
    assert found * 2 == pytest.approx(value * 2), "a number like any other"


def test_a_rate_is_bytes_a_second_if_nobody_asks_otherwise(run: FinishedRun) -> None:
    rate = run.metric("goodput")
    assert rate.unit == "B/s"
    assert run.metric("goodput", "mbit") == pytest.approx(rate * 8 / 1e6)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("step_tim.p100", "did you mean 'step_time'"),
        ("step_time", "needs a statistic"),
        ("step_time.p100 during", "name of a fault"),
        ("step_time.p100 <= 3s", "unexpected"),
        ("", "must begin with a metric"),
    ],
)
def test_a_text_that_is_no_figure_is_a_mistake_with_a_reason(run: FinishedRun, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        run.metric(text)


def test_a_wrong_unit_is_a_mistake(run: FinishedRun) -> None:
    with pytest.raises(ValueError, match="unknown unit 'furlong'"):
        run.metric("step_time.p100", "furlong")


def test_a_fault_that_is_not_there_is_a_mistake_and_not_a_figure(run: FinishedRun) -> None:
    with pytest.raises(ScenarioError, match="nonsense"):
        run.metric("packets_lost during nonsense")


def test_a_mistake_in_a_figure_begins_with_its_text(run: FinishedRun) -> None:
    for ask, text in ((run.metric, "packets_lost during cot"), (run.check, "packets_lost == 0 during cot")):
        with pytest.raises(ScenarioError) as caught:
            ask(text)
        assert str(caught.value) == f"{text}: there is no fault named 'cot'; did you mean 'cut'?"


def test_a_text_that_is_no_expectation_is_a_mistake_with_a_reason(run: FinishedRun) -> None:
    with pytest.raises(ValueError, match="packets_lost: expected one of <="):
        run.check("packets_lost")


def test_an_expectation_that_holds_is_returned_with_its_figures(run: FinishedRun) -> None:
    assert run.check("step_time.p100 <= 1500ms during cut").observed == pytest.approx(1200)


def test_an_expectation_that_does_not_hold_fails(run: FinishedRun) -> None:
    with pytest.raises(AssertionError, match=r"step_time.p100 <= 1.1s during cut: observed 1.2 s"):
        run.check("step_time.p100 <= 1.1s during cut")


def test_what_the_run_cannot_tell_fails(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.events = []
    run = finished(folder, tmp_path)
    for ask in (lambda: run.metric("recovery.p100"), lambda: run.check("recovery.p100 <= 6 rtt")):
        with pytest.raises(Unknown, match="no EV was retired"):
            ask()


def test_figures_of_a_machine_that_did_not_keep_time_are_not_given(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity["softnet_drops"] = 1
    run = finished(folder, tmp_path)
    assert run.verdict == "inconclusive"
    with pytest.raises(Unknown, match="machine: kernel input drops"):
        run.metric("steps_done")


def test_a_run_without_a_verdict_is_none() -> None:
    with pytest.raises(ValueError, match="no tc"):
        FinishedRun(RunOutcome(ExitCode.MISSING, 0.1, error="no tc"))
