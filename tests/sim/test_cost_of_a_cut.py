"""What a cut and a slow port cost, beside what they must: a path's share for a few round trips, and the rate of the
slowest plane (P1 section 4, docs/protocol.md)."""

import pytest

from tests.sim.simnet import RATE
from tests.sim.streams import SIZE, fabric, measure, streams, sums


def shares_after_a_cut(control):
    """Goodput of a flow over line rate, 10 and 30 T from the cut of one of its 16 paths on."""
    net = fabric(congestion_control=control)
    flows = streams(net, [(0, 4)])
    measure(net, flows, 10)
    net.ports.fabric.ports_down([net.ports.uplink(0, 0, 1).near])
    shares = [*measure(net, flows, 10), *measure(net, flows, 20)]
    assert sums(net, "timeouts", "qp_errors", "evs_retired") == {"timeouts": 0, "qp_errors": 0, "evs_retired": 1}
    return shares


def test_a_cut_of_one_of_16_paths_costs_a_flow_next_to_nothing_and_the_window_no_more():
    """What is sent on it until it is known, a sixteenth of 3 T, goes again. Each loss takes one packet off the window
    (UEC 1.0, 3.6.13), which holds half as much again as a round trip needs."""
    nscc, fixed = shares_after_a_cut("nscc"), shares_after_a_cut("fixed")
    assert min(nscc) > 0.95
    assert nscc == pytest.approx(fixed, abs=0.02)


@pytest.mark.parametrize("share", [2, 4])
def test_a_slow_port_of_a_host_slows_the_flow_to_its_rate_and_loses_nothing(share):
    """Its queue is in front of the host's own port, which marks and trims nothing, and takes most of a window: 6 T and
    more. Timers of 4 T and R of 3.5 T took 176 packets for lost in 2 s, and left all 16 paths."""
    net = fabric()
    flows = streams(net, [(0, 4)], size=2 * SIZE)  # two writes posted are more than what waits
    measure(net, flows, 10)
    net.ports.fabric.set_rate(net.ports.host_link(0, 1).name, RATE // share)
    measure(net, flows, 20)
    (kept,) = measure(net, flows, 60)
    assert kept == pytest.approx(1 / share, abs=0.03)
    lost = sums(net, "retransmitted", "evs_retired", "timeouts", "duplicates")
    assert not any(lost.values()), lost
