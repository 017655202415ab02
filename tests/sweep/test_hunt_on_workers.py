"""A hunt on the workers of a scheduler finds what one here does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sweep_stage import Stage, wait_until

pytest.importorskip("distributed", reason="pip install '.[sweep]'")

TINY = """
name: tiny
fabric: {planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 10ms}
workload: [{train: {hosts: all, steps: 4, compute: 5ms, allreduce: 128KiB}}]
faults: [{at: 0s, for: 150ms, name: storm, chaos: {link-down: {times: 20/s, for: 20ms}}}]
expect: [packets_lost <= 5, qp_errors == 0]
"""


@pytest.fixture
def tiny(stage: Stage) -> Path:
    path = stage.place / "tiny.yaml"
    path.write_text(TINY)
    return path


def processes() -> set[int]:
    """Those that make tries for workers."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"sweep.hunter" in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.nightly
def test_it_finds_the_same_and_its_processes_go_with_the_workers(stage: Stage, tiny: Path) -> None:
    before = processes()
    stage.scheduler()
    worker = stage.worker("a", "--nthreads", "2", resources="")
    words = ("hunt", str(tiny), "--seeds", "6", "--shrink-runs", "4")
    here = stage.call(*words, "--jobs", "2", "--out", str(stage.place / "here"))
    there = stage.call(*words, *stage.on, "--out", str(stage.place / "there"))
    assert here.returncode == there.returncode == 1, there.stdout + there.stderr
    found = [re.findall(r"seed \d+ fails: .*", done.stdout) for done in (here, there)]
    assert found[0] == found[1]
    assert processes() - before
    worker.kill()
    wait_until(lambda: not processes() - before, 2)


@pytest.mark.nightly
def test_a_scenario_with_plugin_files_is_hunted_in_here(stage: Stage, tiny: Path) -> None:
    tiny.write_text(f"{TINY}plugins: [mine.py]\n")
    done = stage.call("hunt", str(tiny), "--on", "tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert "hunt in it without --on" in done.stderr


def test_a_hunt_without_a_scheduler(stage: Stage, tiny: Path) -> None:
    done = stage.call("hunt", str(tiny), "--on", "tcp://127.0.0.1:9", "--seeds", "1")
    assert done.returncode == 4
    assert "no scheduler at" in done.stderr
