"""Whole runs over kernel TCP and static ECMP, at a T that NFQUEUE makes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.fabric.capabilities import KERNEL_DELAY, Capability
from tests.emu.runs import Run, assert_data_took_the_foretold_uplinks

T_S = 0.04
RATE_BPS = 50_000_000
SIZE = 1 << 21
HOSTS = 4
COMPUTE_S = 0.05
PAYLOAD, WIRE = 4084, 4170
CLEAN_S = COMPUTE_S + 2 * (HOSTS - 1) * (SIZE / HOSTS * 8 / (RATE_BPS * PAYLOAD / WIRE) + T_S / 2)
"""A step without faults: each chunk goes over a host's link, and half of T away, six times."""
SCENARIO = """
name: over-tcp
seed: 3
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 40ms}
transport: tcp
workload:
  - train: {hosts: all, steps: STEPS, compute: 50ms, allreduce: 2MiB}
expect:
  - qp_errors == 0
  - bytes_wrong == 0
"""
SILENCE = """
faults:
  - {at: 2s, switch-silent: p0-t1-0, for: 3s}
  - {at: 2s, switch-silent: p0-t1-1, for: 3s}
  - {at: 2s, switch-silent: p0-t1-2, for: 3s}
  - {at: 2s, switch-silent: p0-t1-3, for: 3s}
"""


@pytest.fixture(autouse=True)
def a_kernel_that_can_wait(machine: list[Capability]) -> None:
    if not any(one.name == KERNEL_DELAY and one.present for one in machine):
        pytest.skip(f"this kernel has no {KERNEL_DELAY}")


def steps(run: Run) -> dict[int, float]:
    """Seconds of each step, from the first rank's begin to the last one's end."""
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    with (run.folder / "completions.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            step = int(row["step"])
            begins[step] = min(begins.get(step, 1 << 63), int(row["begin_ns"]))
            ends[step] = max(ends.get(step, 0), int(row["end_ns"]))
    return {step: (ends[step] - begins[step]) / 1e9 for step in sorted(ends)}


def document(run: Run, name: str) -> Any:
    return json.loads(Path(run.folder, name).read_text(encoding="utf-8"))


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    lines = (run.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


@pytest.mark.nightly
def test_a_ring_is_exact_at_the_rate_of_the_line_and_the_round_trip_is_t(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=5, scenario=SCENARIO)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert_data_took_the_foretold_uplinks(run)
    seconds = steps(run)
    assert len(seconds) == 5
    # The windows grow in the first step.
    assert max(time for step, time in seconds.items() if step) <= 1.15 * CLEAN_S
    assert T_S <= document(run, "environment.json")["base_rtt_ns"] / 1e9 <= 1.15 * T_S
    hosts = document(run, "counters.json")["hosts"].values()
    moved = 5 * 2 * (HOSTS - 1) * SIZE
    for name in ("bytes_sent", "bytes_delivered"):
        assert moved < sum(host["counters"][name] for host in hosts) < 1.01 * moved


@pytest.mark.nightly
def test_a_job_lives_through_three_seconds_of_silence_in_one_long_step(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=8, scenario=SCENARIO, extra=SILENCE)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    seconds = steps(run)
    assert len(seconds) == 8
    long = {step: time for step, time in seconds.items() if time > 2}
    assert len(long) == 1
    (time,) = long.values()
    # Waits between attempts double, so the first one after the heal comes at most as long after it as the silence was.
    assert 3 < time < 2 * 3 + 1 + CLEAN_S
    stalls = events(run, "stall")
    longest_s = max(stall["end_ns"] - stall["begin_ns"] for stall in stalls) / 1e9
    assert 2.9 < longest_s < 7.5
    assert sum(host["counters"]["timeouts"] for host in document(run, "counters.json")["hosts"].values()) > 0
