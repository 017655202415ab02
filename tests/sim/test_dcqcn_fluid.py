"""DCQCN's steady state at one full port, in the simulator, against the fixed point of the published fluid model."""

from typing import cast

import pytest

from mrc_testbed.hosts.rc.dcqcn import PROFILES, REFERENCE_T_NS
from mrc_testbed.testbed.switching.thresholds import MarkingCurve, PauseThresholds
from mrc_testbed.testbed.transports.roce import MARKING
from tests.sim.rcnet import PACKET_NS, RcNet, stream
from tests.sim.simnet import T

NAME = "dcqcn"
PROFILE, CURVE = PROFILES[NAME], cast(MarkingCurve, MARKING[NAME])
NEVER_PAUSED = PauseThresholds(60, 50, CURVE)
SETTLING, WINDOW, LOOK = 1500 * T, 1500 * T, 20 * T
TARGET = 8


def fixed_point(flows):
    """The share of marked packets at which `flows` equal flows neither gain nor lose, found by halving.

    Zhu et al., "ECN or Delay", CoNEXT 2016, section 3.1: the equations of alpha, target and rate with all rates of
    change 0. Times in T, rates in packets a T. `cut`, `heard`: the chance that a CNP comes in the time between two
    cuts, and in one of alpha's decay; `by_bytes`, `by_time`: increases a packet, by either counter.
    """
    cut_t, alpha_t, increase_t = (
        ns / REFERENCE_T_NS for ns in (PROFILE.notify_ns, PROFILE.alpha_ns, PROFILE.increase_ns)
    )
    line = T / PACKET_NS
    rate, counter = line / flows, PROFILE.byte_counter_ns / REFERENCE_T_NS * line
    step, recoveries = PROFILE.additive * line, PROFILE.recoveries

    def gain(p):
        cut, heard = 1 - (1 - p) ** (cut_t * rate), 1 - (1 - p) ** (alpha_t * rate)
        by_bytes, by_time = p / ((1 - p) ** -counter - 1), p / ((1 - p) ** (-increase_t * rate) - 1)
        behind = heard * cut / cut_t / (by_bytes + by_time)
        late = (1 - p) ** (recoveries * counter) * by_bytes + (1 - p) ** (recoveries * increase_t * rate) * by_time
        return step * rate * late - behind * cut / cut_t

    low, high = 1e-7, 0.3
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if gain(middle) > 0 else (low, middle)
    return low


def marked(net):
    return sum(hits.marked for _, hits in net.ports.fabric.port_hits())


@pytest.mark.slow
@pytest.mark.parametrize("flows", [2, 4])
@pytest.mark.nightly
def test_the_steady_state_is_that_of_the_fluid_model(flows):
    net = RcNet(hosts=18, uplinks=4, switches=NEVER_PAUSED, congestion_control=NAME)
    sending = [net.join(host, TARGET) for host in range(flows)]
    for flow in sending:
        stream(net, flow, 300_000 // flows)
    net.run(within=SETTLING, must=False)
    marks, before, queue = marked(net), [net.requester(flow)._una for flow in sending], []
    while len(queue) < WINDOW // LOOK:
        net.run(within=LOOK, must=False)
        queue.append(net.ports.last_hop_backlog_ns(TARGET, 0) / T)
    arrived = [net.requester(flow)._una - was for flow, was in zip(sending, before, strict=True)]
    share = fixed_point(flows)
    assert sum(arrived) * PACKET_NS / WINDOW > 0.95
    assert min(arrived) > 0.7 * sum(arrived) / flows
    assert (marked(net) - marks) / sum(arrived) == pytest.approx(share, rel=0.35)
    # The curve says which queue marks that share.
    assert sum(queue) / len(queue) == pytest.approx(CURVE.low + share / CURVE.most * (CURVE.high - CURVE.low), rel=0.35)


def test_more_flows_need_more_marks_and_fifteen_more_than_the_curve_has_below_its_end():
    shares = [fixed_point(flows) for flows in range(2, 16)]
    assert shares == sorted(shares)
    assert shares[-2] < CURVE.most < shares[-1]
