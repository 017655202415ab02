"""A sweep of real cells: whatever kills a worker takes its fabric with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.emu.runs import DAEMON, SMALL
from tests.sweep_stage import MAIN, Stage, results, wait_until

pytest.importorskip("distributed", reason="pip install '.[sweep]'")
MARK = "MRC_TEST_SWEEP"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, SMALL.replace("STEPS", "20"))
    made.env[MARK] = uuid4().hex
    yield made
    made.end()


def daemons(stage: Stage) -> list[int]:
    """Endpoint daemons of this sweep."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            ours = entry.name.isdigit() and stage.env[MARK].encode() in (entry / "environ").read_bytes()
            if ours and DAEMON.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.timed
@pytest.mark.nightly
def test_a_killed_worker_takes_its_fabric_with_it_and_the_cell_is_done_elsewhere(stage: Stage) -> None:
    stage.scheduler()
    victim = stage.worker("a")
    folder = stage.plan(2)
    running = stage.begin([*MAIN, "sweep", "run", str(folder), *stage.on])
    wait_until(lambda: list(folder.glob("cells/*/1/cell.json")), 60)
    wait_until(lambda: daemons(stage), 30)
    os.kill(victim.pid, signal.SIGKILL)
    wait_until(lambda: not daemons(stage), 5)
    stage.worker("b")
    assert running.wait(90) == 0
    assert all(tries[-1] == "pass" for tries in results(folder).values())
