"""A machine that stops for a while, as a paused VM or a laptop that sleeps: nothing is believed, and nobody fails.

Every process of the run is stopped, by its number. The wall clock stepping meanwhile: tests/unit/hosts/test_stamps.py.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from .runs import DAEMON, Run

pytestmark = [pytest.mark.alone, pytest.mark.makes_late]


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """To those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def stand_still(pids: list[int], seconds: float) -> None:
    send(pids, signal.SIGSTOP)
    time.sleep(seconds)
    send(reversed(pids), signal.SIGCONT)


@pytest.mark.parametrize(
    ("who", "seconds", "times"),
    [
        ("", 2, 1),
        pytest.param("", 0.4, 4, marks=pytest.mark.nightly),
        pytest.param(DAEMON, 2, 1, marks=pytest.mark.nightly),
        pytest.param("mrc-testbed run", 2, 1, marks=pytest.mark.nightly),
    ],
    ids=["all", "all, again and again", "the hosts", "the supervisor"],
)
def test_a_run_that_stood_still_is_no_believed_fail(tmp_path: Path, who: str, seconds: float, times: int) -> None:
    run = Run(tmp_path, steps=40)
    run.wait_until_step(2)
    for _ in range(times):
        stand_still(run.pids(who), seconds)
        time.sleep(0.3)
    status = run.finish(timeout_s=90)
    assert "Traceback" not in run.output + run.errors
    assert run.verdict["verdict"] != "fail", run.output
    assert status in (0, 3)
    if who != "mrc-testbed run":
        assert (status, run.verdict["fidelity"]["ok"]) == (3, False), "the hosts were late, and somebody says so"


@pytest.mark.nightly
def test_faults_during_a_standstill_are_healed(tmp_path: Path) -> None:
    cut = (
        "faults: [{at: 1s, link-down: 'p0-t0-0:p0-t1-0', for: 1s}, {at: 1200ms, switch-silent: p1-t1-0, for: 500ms}]\n"
    )
    run = Run(tmp_path, steps=60, extra=cut)
    run.wait_until_step(2)
    stand_still(run.pids(), 2)
    assert run.finish(timeout_s=90) == 3
    assert run.verdict["verdict"] == "inconclusive"
    healed = [line for line in run.history() if line["op"] == "heal" and line["type"] == "ok"]
    injected = [line for line in run.history() if line["op"] == "inject" and line["type"] == "ok"]
    assert len(healed) == len(injected)
    assert not [line for line in run.history() if line["op"] == "phase" and line["type"] == "fail"]
