"""Two jobs of steps and a flow over one real fabric: each has its own steps, its own bytes and its own end."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.report.frames.run import load_run
from tests.emu.runs import Run

SCENARIO = """
name: two-jobs
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - train: {hosts: [h0, h2], steps: 8, compute: 50ms, allreduce: 128KiB, name: longer}
  - all-to-all: {hosts: [h3, h1], size: 64KiB, iterations: 3, warm_up: 1}
  - write: {from: h0, to: h3, for: 1500ms}
expect:
  - qp_errors == 0
  - bytes_wrong of each job == 0
  - steps_done of longer == 8
  - steps_done of job-2 == 3
  - unfinished == 0
"""
SENT = {"longer": 8 * 2 * (128 << 10), "job-2": 3 * 2 * (32 << 10)}


@pytest.mark.nightly
def test_two_jobs_and_a_flow_do_their_own_work(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=SCENARIO)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    steps = load_run(run.folder).steps
    assert steps.groupby("job")["bytes"].sum().to_dict() == SENT
    assert set(steps[steps["job"] == "job-2"]["last_host"]) <= {"h1", "h3"}
    assert "longer 8 steps" in run.output
    assert "step time of job-2" in run.output


DEATH = """
name: one-dies
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - train: {hosts: [h0, h2], steps: 8, compute: 50ms, allreduce: 256KiB, name: lives}
  - train: {hosts: [h1, h3], steps: 8, compute: 50ms, allreduce: 256KiB, name: dies}
faults: [{at: 700ms, link-down: ["h1:p0-t0-0", "h1:p1-t0-0"], for: 50s, name: nic}]
expect:
  - job_died of dies == 1
  - unfinished of lives == 0
"""


def test_a_job_lives_on_beside_one_that_dies(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=DEATH)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert "survived: lives" in run.output
