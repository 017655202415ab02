"""What benchmarks/crowd.py compares is the same work among different numbers of hosts."""

from __future__ import annotations

import pytest

from benchmarks.crowd import HOSTS, run_of
from mrc_testbed.testbed.scenario.model.offered_load import offered_load


@pytest.mark.parametrize("hosts", HOSTS)
def test_as_many_packets_in_a_turn_and_in_a_second_in_the_same_fabric(hosts: int) -> None:
    run, fewest = run_of(hosts), run_of(HOSTS[0])
    assert len(run.host_names) == hosts
    assert run.plan().node_names == fewest.plan().node_names
    assert len(run.plan().hosts) == 64
    assert offered_load(run).pps == pytest.approx(offered_load(fewest).pps)
    assert run.fabric.port_rate_bps * run.fabric.rtt_ns == fewest.fabric.port_rate_bps * fewest.fabric.rtt_ns
    assert run.fabric.rtt_ns * HOSTS[0] == fewest.fabric.rtt_ns * hosts
