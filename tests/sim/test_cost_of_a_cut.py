"""What a cut and a slow port cost, beside what they must: a path's share for a few round trips, and the rate of the
slowest plane (P1 section 4, docs/protocol.md)."""

import pytest

from tests.sim.simnet import RATE
from tests.sim.streams import SIZE, fabric, measure, streams, sums


def shares_after_a_cut(control, **shape):
    """Goodput over line rate of two hosts that send to each other, 10 and 30 T from the cut of one of their paths."""
    net = fabric(hosts=2, congestion_control=control, **shape)
    flows = streams(net, [(0, 1), (1, 0)])
    measure(net, flows, 10)
    net.ports.fabric.ports_down([net.ports.uplink(0, 0, 1).near])
    shares = [sum(measure(net, flows, ticks)) / 2 * 4 / net.planes for ticks in (10, 20)]
    assert sums(net, "timeouts", "qp_errors", "evs_retired") == {"timeouts": 0, "qp_errors": 0, "evs_retired": 2}
    return shares


@pytest.mark.parametrize(("shape", "kept"), [({}, 0.9), ({"planes": 2, "uplinks": 2}, 0.8)], ids=["of 16", "of 4"])
def test_a_cut_costs_what_was_under_way_on_the_path_and_the_window_nothing(shape, kept):
    """What was sent on it until that is known, 3 T, goes again. With one packet off the window for each loss, four
    paths of 12.5 Mb/s had 0.72 of line rate for 30 T: between full packets both ways no round trip is undelayed, and
    the window grew by a third of a packet in each."""
    nscc, fixed = shares_after_a_cut("nscc", **shape), shares_after_a_cut("fixed", **shape)
    assert min(nscc) > kept
    assert nscc == pytest.approx(fixed, abs=0.06)


@pytest.mark.parametrize("share", [2, 4])
def test_no_timer_comes_before_the_queue_of_a_slow_port(share):
    """A host's own port at a fraction of its rate marks and trims nothing, and takes most of a window: 6 T and more."""
    net = fabric()
    flows = streams(net, [(0, 4)], size=2 * SIZE)  # two writes posted are more than what waits
    measure(net, flows, 10)
    net.ports.fabric.set_rate(net.ports.host_link(0, 1).name, RATE // share)
    (kept,) = measure(net, flows, 80)
    assert kept > 1 / share - 0.03
    assert sums(net, "timeouts", "qp_errors") == {"timeouts": 0, "qp_errors": 0}
