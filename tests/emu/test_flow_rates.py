"""Receivers of flows count bytes as they are placed, over every transport: one long message has the rate of its
packets."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.fabric.capabilities import MPTCP, Capability
from mrc_testbed.testbed.workloads.fairness import line_rate
from tests.emu.runs import Run

pytestmark = pytest.mark.timed

MESSAGE_BYTES = 4_000_000
SCENARIO = f"""
name: long-message
transport: {{transport}}
fabric: {{{{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}}}}
workload:
  - write: {{{{from: h0, to: h1, bytes: {MESSAGE_BYTES}B, message: {MESSAGE_BYTES}B}}}}
expect:
  - bytes_wrong == 0
"""


@pytest.mark.parametrize("transport", ["mrc", "roce", "tcp", "mptcp"])
@pytest.mark.nightly(keep=1)
def test_a_long_message_counts_as_its_packets_come(tmp_path: Path, machine: list[Capability], transport: str) -> None:
    if transport == "mptcp" and MPTCP not in {one.name for one in machine if one.present}:
        pytest.skip("this kernel has no MPTCP")
    run = Run(tmp_path, steps=1, scenario=SCENARIO.format(transport=transport))
    run.finish()
    record = load_record(run.folder)
    rows = list(record.received)
    assert sum(row.bytes for row in rows) == MESSAGE_BYTES, "each byte once"
    assert sum(row.messages for row in rows) == 1
    moved = [row.bytes for row in rows if row.bytes][2:-2]
    assert len(moved) >= 5, "the message is on its way for more than a second"
    # The kernel wakes a reader of TCP for a quarter of a MiB at a time, which is two stretches of a slow port.
    assert max(moved) <= 1.25 * median(moved)
    assert median(moved) <= 1.05 * line_rate(record.scenario.shape()) * 0.1
