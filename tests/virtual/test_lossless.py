"""RoCE over PFC as a scenario: what a run writes of pauses, and what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.report.frames.run import load_run
from mrc_testbed.testbed.report.transport_words import transport_words
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.generated.oracle import wrong_with

INCAST = """
name: incast
world: virtual
fabric: {planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 4, port_rate: 50mbit, rtt: 40ms}
transport: roce
roce: {congestion_control: none}
workload: [{incast: {to: h4, from: [h0, h1, h2], victims: [h3->h5], for: 2s}}]
"""


@pytest.mark.parametrize("buffers", ["pfc", "deep"])
def test_a_run_tells_of_its_pauses(tmp_path: Path, buffers: str) -> None:
    scenario = load_scenario_text(INCAST, overrides=[f"roce.buffers={buffers}"])
    assert wrong_with(scenario, tmp_path) == []
    folder = next(tmp_path.glob("2*-incast"))
    run, lossless = load_run(folder), buffers == "pfc"
    assert transport_words(run.scenario) == ("RoCE, PFC" if lossless else "RoCE, deep buffers")
    assert (run.figure("pauses").value or 0) == (sum(one.pauses for one in load_record(folder).paused_ports))
    assert bool(run.figure("pauses").value) == lossless
    assert bool(run.figure("paused.max").value) == lossless
    assert run.figure("queue_drops").value == 0
    assert run.figure("retransmissions").value == 0
    assert bool(run.queues["paused_ns"].fillna(0).max()) == lossless
