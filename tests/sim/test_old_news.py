"""News of a time that is over: late losses, time stamps that wrapped, ports beyond the mask."""

from __future__ import annotations

import pytest

from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.reasons import LossReason
from tests.sim.simnet import Net, T, pattern


@pytest.mark.parametrize("plane", [3, 8, 15])
@pytest.mark.parametrize("who", [0, 1])
def test_any_port_of_sixteen_may_go_down(who, plane):
    """A SACK has a bit for the first eight; the port of a ninth plane ended the daemon that lost it."""
    net = Net(planes=16, uplinks=2, seed=1)
    flow = net.join(region_bytes=1 << 24)
    flow.write(pattern(4096 * 2000))
    net.run(within=T * 3, must=False)
    assert not net.completed()
    net.port_down(who, plane)
    net.run(until=lambda: bool(net.completed()), within=200 * T)
    assert net.hosts[1 - who]._peers[who].ports.remote.down_mask == 1 << plane


def test_what_was_lost_before_an_ev_failed_says_nothing_of_it_once_it_is_back():
    net = Net(planes=2, uplinks=2, seed=1)
    net.join()
    peer = net.hosts[0]._peers[1]
    path, before = peer.paths[0], net.now
    peer.lose(path, LossReason.OVERTAKEN, before, before)
    assert path.state is EvState.ASSUMED_BAD
    net.run(until=lambda: path.state is EvState.GOOD, within=400 * T)
    peer.lose(path, LossReason.PROBED, before, net.now)
    assert (path.state, path.probes_needed) == (EvState.GOOD, 3)
    peer.lose(path, LossReason.PROBED, net.now, net.now)
    assert (path.state, path.probes_needed) == (EvState.ASSUMED_BAD, 6), "it failed again"


def test_an_ev_that_a_controller_kept_out_has_not_failed():
    net = Net(planes=2, uplinks=2, seed=1)
    net.join()
    host = net.hosts[0]
    path = host._peers[1].paths[0]
    for _ in range(3):
        host.deny(1, [(0, 0)])
        host.allow(1, [(0, 0)], net.now)
        net.run(until=lambda: path.state is EvState.GOOD, within=400 * T)
        assert path.probes_needed == 3


@pytest.mark.parametrize("t_ms", [0.05, 5, 20, 40, 67, 68, 100, 167, 1000, 10_000])
def test_time_stamps_do_not_wrap_within_eight_t(t_ms):
    t_ns = round(t_ms * 1e6)
    shift = EndpointConfig(host=0, planes=1, udp_port=1, rtt_ns=t_ns, port_rate_bps=10**6, seed=1).stamp_shift
    assert 8 * t_ns <= 1 << shift + 16
    assert 1 << shift <= t_ns // 100, "and they still tell a hundredth of T"
    assert shift == 13 or not 5 <= t_ms <= 67, "the unit that captures and docs/protocol.md tell of"
