"""RoCE over ports that pause each other (PFC), against deep buffers and against what arithmetic says of shares."""

from collections import Counter
from itertools import chain

import pytest

from mrc_testbed.testbed.switching.thresholds import PauseThresholds
from tests.sim.rcnet import DEEP, PACKET_NS, RcNet, stream
from tests.sim.simnet import T
from tests.sim.test_rc import permutation

PFC = PauseThresholds()
SETTLING, WINDOW = 20 * T, 60 * T


def incast(seed, qps=1, levels=PFC, **config):
    """Seven of one group write to one of the other, and an eighth to its neighbour: shares, and their uplinks."""
    net = RcNet(hosts=16, uplinks=4, seed=seed, switches=levels, **config)
    pairs = [(host, 8) for host in range(7)] + [(7, 9)]
    flows = [[net.join(*pair) for _ in range(qps)] for pair in pairs]
    for flow in chain(*flows):
        stream(net, flow, 12_000 // qps)
    net.run(within=SETTLING, must=False)
    before = [sum(net.requester(one)._una for one in each) for each in flows]
    net.run(within=WINDOW, must=False)
    after = [sum(net.requester(one)._una for one in each) for each in flows]
    shares = [(now - was) * PACKET_NS / WINDOW for now, was in zip(after, before, strict=True)]
    return net, shares, [net.uplinks_of(each) for each in flows]


def victims_share(ways):
    """1/(m k) for a victim whose uplink carries k flows of the incast, which come over m uplinks.

    The full port serves each of m entrances alike, as each holds as much of its queue; so an uplink has 1/m of it, and
    all flows on an uplink are alike as well, whether they wait for the full port or are behind those that do.
    """
    carried = Counter(way for (way,) in ways[:-1])
    ((mine,)) = ways[-1]
    return 1 / (len(carried) * carried[mine]) if carried[mine] else 1


@pytest.mark.parametrize("seed", range(3))
def test_flows_on_one_uplink_have_the_shares_that_deep_buffers_give(seed):
    net, shares = permutation(seed, PFC)
    _, deep = permutation(seed, DEEP)
    assert max(flows for _, flows in shares) > 1, "no collision: this shows nothing"
    for (each, flows), (other, _) in zip(shares, deep, strict=True):
        assert each == pytest.approx(1 / flows, rel=0.03)
        assert each == pytest.approx(other, rel=0.03)
    assert net.dropped() == net.counters(0)["retransmitted"] == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_bystander_of_an_incast_has_what_those_have_that_it_stands_behind(seed):
    net, shares, ways = incast(seed)
    assert sum(shares[:-1]) == pytest.approx(1, abs=0.03)
    assert shares[-1] == pytest.approx(victims_share(ways), rel=0.1)
    assert net.dropped() == 0
    assert net.counters()["retransmitted"] == 0
