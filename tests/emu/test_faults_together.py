"""Faults that overlap on the same ports in whole runs, and a run that is done again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.testbed.rundir.results import run_folders
from tests.emu.runs import COMMAND, SMALL, Run

FAULTS = """\
faults:
  - {at: 300ms, link-down: "p0-t0-0:p0-t1-1", for: 1900ms, name: cut}
  - {at: 500ms, link-flap: "p0-t0-*:p0-t1-1", period: 600ms, count: 3, jitter: 30%, name: flap}
  - {at: 700ms, switch-reboot: p0-t1-1, boot: 700ms, name: reboot}
  - {at: 900ms, switch-reboot: p0-t0-1, boot: 700ms, name: below}
  - {at: 1100ms, port-flap: "any of h?:p0-*", period: 500ms, count: 2, jitter: 30%, name: ports}
  - {at: 1s, transceiver-flap: p0-t0-1, ports: 1, period: 600ms, count: 1, name: light}
  - {at: 1200ms, link-rate: "any of p1-*:p1-t1-0", rate: 6mbit, for: 800ms, name: slow}
  - {at: 1300ms, link-rate: "p1-*:p1-t1-0", rate: 8mbit, for: 400ms, name: slower}
  - at: 2300ms
    for: 2s
    name: storm
    chaos:
      link-flap: {times: 1/s, period: 400ms, count: 2, of: T0-T1 links}
      switch-reboot: {times: 1/s, boot: 500ms, of: p1-t1-*}
      link-loss: {times: 1/s, loss: 30%, for: 500ms}
      link-rate: {times: 1/s, rate: 5mbit, for: 500ms}
"""


def schedule(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["faults"]
    return found


@pytest.mark.nightly
def test_faults_that_overlap_heal_right_and_are_the_same_when_the_run_is_replayed(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=26, extra=FAULTS, scenario=SMALL.replace("hosts_per_t0: 1", "hosts_per_t0: 2"))
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert_each_was_read_back(run.history(), len(schedule(run.folder)))
    kinds = {occurrence["kind"] for occurrence in schedule(run.folder) if occurrence["fault"] == "storm"}
    assert len(kinds) >= 2, "the seed of this scenario draws that"

    again = tmp_path / "again"
    ended = subprocess.run(
        [*COMMAND, "replay", str(run.folder), "--out", str(again)], capture_output=True, text=True, check=False
    )
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    (folder,) = run_folders(again)
    assert schedule(folder) == schedule(run.folder)
    assert (folder / "scenario.yaml").read_text() == (run.folder / "scenario.yaml").read_text()
    environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    assert environment["replays"] == str(run.folder)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    assert_each_was_read_back(lines, len(schedule(folder)))


def assert_each_was_read_back(history: list[dict[str, object]], occurrences: int) -> None:
    """After each heal the kernel held what the faults that were still on had left, and at the end the whole plan."""
    done = [line["op"] for line in history if line["type"] == "ok"]
    assert [done.count(op) for op in ("inject", "heal", "read-back")] == [occurrences] * 3
    assert any(line.get("phase") == "settle" and line["type"] == "ok" for line in history)
    assert not [line for line in history if line["type"] == "fail"]
