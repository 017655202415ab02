"""What workers of a scheduler do to a hunt: they die with an outcome, are gone, or have no space."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.hunt.subject import HuntRequest
from mrc_testbed.testbed.app.hunt.trial import Candidate, Outcome
from mrc_testbed.testbed.sweep import hunter
from mrc_testbed.testbed.sweep.placing import WorkerFacts
from tests.unit.sweep.swept import SMALL


class Lost:
    """A try whose worker died with its outcome, so that it is made once more; or one that raised such an error."""

    def __init__(self, errors: list[Exception], status: str) -> None:
        self.errors, self.status = errors, status

    def result(self, timeout: float) -> Outcome:
        if self.errors:
            raise self.errors.pop()
        return Outcome({"x == 0": "1"})

    def add_done_callback(self, called: Callable[[object], None]) -> None:
        called(self)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    pytest.importorskip("distributed")
    from mrc_testbed.testbed.sweep import hunting
    from mrc_testbed.testbed.sweep.address import SchedulerAddress

    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.setattr(hunting, "require_scheduler", lambda *_: None)
    monkeypatch.setattr(hunting, "_LOOK_EVERY_S", 0.01)
    made = hunting.WorkersElsewhere(HuntRequest(tmp_path / "small.yaml"), SchedulerAddress("tcp://127.0.0.1:9", None))
    monkeypatch.setattr(made, "_client", None, raising=False)
    there = [{"a": WorkerFacts("a", "a", 1, None, None)}]
    monkeypatch.setattr(hunting, "workers_of", lambda _: there.pop() if len(there) > 1 else there[0])
    return made, there, monkeypatch


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("pending", Outcome({"x == 0": "1"})),
        ("error", Outcome(problem="its worker could not say: TimeoutError: ", spoiled=True)),
    ],
)
def test_a_try_whose_worker_died_with_its_outcome_is_waited_for(elsewhere: Any, status: str, expected: Outcome) -> None:
    made, _, patch = elsewhere
    future = Lost([TimeoutError()], status)
    patch.setattr(made, "_submit", lambda job: made._watch("x", job, future))
    assert made.outcome(Candidate(1)) == expected


def test_a_hunt_without_workers_waits_and_says_so(elsewhere: Any, capsys: pytest.CaptureFixture[str]) -> None:
    made, there, patch = elsewhere
    there += [{}] * 3
    patch.setattr(made, "_submit", lambda job: made._watch("x", job, Lost([], "finished")))
    assert made.outcome(Candidate(1)).failures
    assert len(there) == 1
    assert capsys.readouterr().err == "no worker is there; waiting for one\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_machine_that_cannot_begin_a_try_is_no_failure(place: Path) -> None:
    """The file of the scenario cannot be written; nothing is left of it."""
    spec = hunter.HuntSpec(HuntRequest(Path(f"{'x' * 300}.yaml")), SMALL)
    for _ in range(2):
        outcome = hunter.attempt_here(spec, Candidate(1), lambda: False)
        assert not outcome.failures
        assert outcome.problem.startswith("its machine could not run it: ")
    assert len(list(place.iterdir())) == 1
    hunter._OF_THREAD.hunters.pop(spec).end()
    assert not list(place.iterdir())


def test_a_machine_that_cannot_begin_a_process_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    outcome = hunter.attempt_here(hunter.HuntSpec(HuntRequest(Path("x")), SMALL), Candidate(1), lambda: False)
    assert outcome == Outcome.by_machine("No such file or directory")
