"""What machines do to a sweep: they are too small, full, shut down, or gone."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.batch import load_cases
from mrc_testbed.testbed.checks.result import Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import ExitCode, RunError, TestbedError, UsageError
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir import results
from mrc_testbed.testbed.sweep.cell import CellSpec
from mrc_testbed.testbed.sweep.document import cell_document
from mrc_testbed.testbed.sweep.engine import CellJob
from mrc_testbed.testbed.sweep.placing import WorkerFacts
from tests.unit.sweep.swept import SMALL, planned


def outcome(code: ExitCode, caveat: str | None = None, spoiled: bool = False) -> RunOutcome:
    """`caveat` None: it could not begin."""
    if caveat is None:
        return RunOutcome(code, 0.0, error="it could not begin")
    fidelity = Fidelity((FidelityFigure("late", 2.0, 1.0, "ms", ok=not spoiled),), None, caveat)
    return RunOutcome(code, 0.0, Verdict(Status.INCONCLUSIVE, "x", (), fidelity))


@pytest.mark.parametrize(
    ("ended", "again"),
    [
        (outcome(ExitCode.MISSING), True),
        (outcome(ExitCode.INTERRUPTED, "the run was interrupted: SIGTERM"), True),
        (outcome(ExitCode.INCONCLUSIVE), True),
        (outcome(ExitCode.INCONCLUSIVE, "the run was interrupted: cannot write x: No space left"), True),
        (outcome(ExitCode.INCONCLUSIVE, "", spoiled=True), True),
        (outcome(ExitCode.INCONCLUSIVE, ""), False),
        (outcome(ExitCode.USAGE), False),
        (outcome(ExitCode.FAIL, "", spoiled=True), False),
        (outcome(ExitCode.PASS, ""), False),
    ],
)
def test_what_a_machine_ended_goes_to_another_one(tmp_path: Path, ended: RunOutcome, again: bool) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    (case,) = load_cases([tmp_path / "small.yaml"])
    assert cell_document(replace(case, tries=(ended,)))["another_try"] is again


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, RunError), (errno.EIO, RunError), (errno.EACCES, UsageError)]
)
def test_a_disk_that_is_full_is_no_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[TestbedError]
) -> None:
    made = Path.mkdir

    def mkdir(path: Path, *given: Any, **named: Any) -> None:
        if path.name == refused:
            raise OSError(number, os.strerror(number))
        made(path, *given, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(results, "STAMP", "now")
    for refused in ("now-x", "logs"):
        with pytest.raises(kind, match="cannot make a folder there") as told:
            results.create_folder(tmp_path / f"of-{refused}", "x")
        assert type(told.value) is kind


@pytest.mark.parametrize(
    ("cpus", "running", "room"),
    [
        # A big one runs on the only worker that carries it: the small ones have the two others.
        ((1, 1, 9), (9, 1), {1: True, 9: False}),
        ((1, 1, 9), (9, 1, 1), {1: False, 9: False}),
        # Small ones are no reason for a big one to wait, where they may run elsewhere.
        ((1, 1, 9), (1, 1), {1: True, 9: True}),
        # All carry both: then all count.
        ((9, 9), (1, 1), {9: False}),
        ((None, None), (1, 1), {9: False}),
        # The worker of the big one has died.
        ((1, 1), (9,), {1: True, 9: False}),
        ((1, 1), (9, 1), {1: True}),
    ],
)
def test_room_is_that_of_the_workers_which_carry_a_cell(
    tmp_path: Path, cpus: tuple[float | None, ...], running: tuple[float, ...], room: dict[float, bool]
) -> None:
    pytest.importorskip("distributed")
    from mrc_testbed.testbed.sweep.address import SchedulerAddress
    from mrc_testbed.testbed.sweep.engine_dask import DaskEngine

    folder = planned(tmp_path, 1)

    def sized(size: float) -> CellJob:
        return CellJob(replace(folder.cells[0], cpus=size), CellSpec("x", {}, "evidence", {}), 0)

    engine = DaskEngine(SchedulerAddress("tcp://127.0.0.1:9", None), folder)
    engine._looked_s = time.monotonic() + 1000
    engine._workers = {
        str(number): WorkerFacts(str(number), str(number), 1, 1, each) for number, each in enumerate(cpus)
    }
    engine._running = {str(number): sized(size) for number, size in enumerate(running)}
    assert {size: engine.has_room(sized(size)) for size in room} == room
    told = [line for line in engine.told.take() if "no worker is there that carries its 9 CPUs; waiting" in line]
    assert bool(told) == (9 in room and not any(each is None or each >= 9 for each in cpus))
