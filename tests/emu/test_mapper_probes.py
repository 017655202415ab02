"""A run with the mapper's agents on this kernel: six faults in turn are named, nothing else, and the books agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.fabric_map import map_answers, score_answers
from mrc_testbed.testbed.checks.record import load_record
from tests.emu.runs import Run

SCENARIO = """
name: probed
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
mapper: {evidence: [probes]}
workload:
  - permutation: {for: 27s}
faults:
  - {at: 2s, link-down: "p0-t0-1:p0-t1-1", for: 2s, name: link}
  - {at: 6s, one-way: "p1-t0-0:p1-t1-0", direction: up, for: 2s, name: one-way}
  - {at: 10s, switch-silent: p0-t1-0, for: 2s, name: silent}
  - {at: 14s, switch-reboot: p1-t1-1, boot: 2s, name: reboot}
  - {at: 18s, link-down: "h1:p0-t0-0", for: 2s, name: port}
  - {at: 22s, link-loss: "h2:p1-t0-1", loss: 20%, for: 4s, name: lossy}
"""


@pytest.mark.timeout(150)
@pytest.mark.nightly
def test_six_faults_in_turn_are_named_and_nothing_else(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=SCENARIO)
    run.finish(timeout_s=120)
    run.assert_passed_or_machine_was_busy()
    record = load_record(run.folder)
    (unexplained,) = [row for row in run.verdict["fidelity"]["figures"] if row["name"] == "unexplained packets"]
    assert unexplained["observed"] == 0
    assert all(own["mapper_heard"] > 0 for own in record.counters.values())
    if run.verdict["verdict"] == "inconclusive":
        return  # what a machine says that did not keep time does not count
    found = score_answers(record, map_answers(record))
    assert found.falsely_accused == 0
    assert found.precision == 1
    assert found.recall == 1
    rtt_ns = 20_000_000
    for one in found.faults:
        most = 150 if one.span.fault == "lossy" else 40
        assert one.located_ns is not None
        assert one.located_ns <= most * rtt_ns, one.span.fault
