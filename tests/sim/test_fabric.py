"""Stories of P1's congested fabrics (Figs. 12 to 14, 18 to 20): 8 hosts, 4 planes of 25 Mb/s, T = 20 ms, real queues.

Goodput is payload as a share of what a host's four ports carry of it.
"""

import pytest

from mrc_testbed.hosts.mrc.events import EvChanged, PlaneChanged
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.testbed.switching.port_rules import PortRule
from tests.sim.simnet import RATE, T
from tests.sim.streams import bad, fabric, measure, streams, sums

pytestmark = pytest.mark.slow

ACROSS = [(i, i + 4) for i in range(4)]
BACK = [(b, a) for a, b in ACROSS]
TURNED = [(0, 5), (1, 6), (2, 7), (3, 4), (4, 2), (5, 3), (6, 0), (7, 1)]
SETTLING_T = 40
"""T after which the shares of an incast are asked about. Measured: within 10 % after 30 to 40 T."""


def nothing_blamed(net):
    """No EV left, no timer fired, no QP failed."""
    counts = sums(net, "evs_retired", "timeouts", "qp_errors", "lost_timeout", "lost_reordered", "lost_overtaken")
    return not any(counts.values())


# --- permutations: P1 Fig. 20 ---


@pytest.mark.parametrize("pairs", [ACROSS, ACROSS + BACK, TURNED], ids=["one way", "both ways", "turned"])
@pytest.mark.nightly(keep=1)
def test_a_permutation_that_fills_all_uplinks_gives_every_flow_line_rate(pairs):
    net = fabric()
    flows = streams(net, pairs)
    shares = measure(net, flows, 100)
    assert min(shares) >= 0.95
    assert min(shares) / max(shares) >= 0.95
    assert nothing_blamed(net)
    assert net.ports.total("trimmed", last_hop=False) < 0.005 * sums(net, "data_sent")["data_sent"]


@pytest.mark.parametrize("jitter_ns", [2_000_000, 5_000_000])
@pytest.mark.nightly
def test_a_permutation_survives_hosts_that_are_late(jitter_ns):
    """T/10 is what a daemon's turn takes; a busy machine takes longer."""
    net = fabric()
    net.worsen(jitter_ns=jitter_ns)
    shares = measure(net, streams(net, ACROSS), 100)
    assert min(shares) > 0.92
    assert nothing_blamed(net)


# --- incast: P1 Fig. 18c ---

INCASTS = {
    "7 to 1": ([(i, 0) for i in range(1, 8)], None),
    "6 to 1 from both groups, victim across": ([(i, 0) for i in range(1, 7)], (7, 1)),
    "4 to 1 across, victim inside": ([(i, 0) for i in range(4, 8)], (1, 2)),
    "3 to 1 across, victim across": ([(i, 0) for i in range(4, 7)], (7, 1)),
    "2 to 1": ([(4, 0), (5, 0)], None),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", INCASTS)
@pytest.mark.nightly(keep=2)
def test_an_incast_shares_the_port_fairly_and_the_victim_keeps_line_rate(name, seed):
    pairs, victim = INCASTS[name]
    net = fabric(seed=seed)
    flows = streams(net, pairs + ([victim] if victim else []))
    measure(net, flows, SETTLING_T)
    trimmed = net.ports.total("trimmed", last_hop=True)
    shares = measure(net, flows, 100)
    incast = shares[: len(pairs)]
    assert sum(incast) > 0.98
    assert max(incast) / min(incast) < 1.1
    assert all(share * len(pairs) == pytest.approx(1, abs=0.05) for share in incast)
    if victim:
        assert shares[-1] >= 0.95
    assert nothing_blamed(net)
    assert 0 < trimmed == net.ports.total("trimmed", last_hop=True), "trims belong to the first round trips"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_incast_has_settled_after_40_t(seed):
    net = fabric(seed=seed)
    flows = streams(net, INCASTS["7 to 1"][0])
    measure(net, flows, 40)
    shares = measure(net, flows, 10)
    # 84 packets a flow; within 17 % on 12 seeds, and within 10 % after 60 T.
    assert all(share * 7 == pytest.approx(1, abs=0.2) for share in shares)


@pytest.mark.parametrize("late_ns", [6_000_000, 12_000_000])
def test_an_incast_settles_though_hosts_were_late_with_its_first_packets(late_ns):
    """A machine that has to start everything at once is: no data came over an idle path."""
    net = fabric()
    flows = streams(net, INCASTS["7 to 1"][0])
    net.worsen(delay_ns=T // 2 + late_ns)
    net.run(within=T, must=False)
    net.worsen(delay_ns=T // 2)
    measure(net, flows, SETTLING_T)
    assert all(share * 7 == pytest.approx(1, abs=0.1) for share in measure(net, flows, 20))


def test_senders_that_come_one_after_the_other_share_too():
    net = fabric()
    flows = []
    for source in range(1, 8):
        flows += streams(net, [(source, 0)])
        net.run(within=7 * T, must=False)
    measure(net, flows, SETTLING_T)
    assert all(share * 7 == pytest.approx(1, abs=0.05) for share in measure(net, flows, 100))
    assert nothing_blamed(net)


def test_the_last_flow_of_an_incast_is_back_at_line_rate_within_10_t():
    net = fabric()
    flows = streams(net, [(source, 0) for source in range(1, 8)])
    measure(net, flows, SETTLING_T)
    for flow in flows[1:]:
        flow.on = False
    net.run(lambda: all(flow.idle() for flow in flows[1:]), within=300 * T)
    measure(net, flows, 10)
    assert measure(net, flows, 10)[0] > 0.98


def test_the_share_that_a_flow_does_not_use_is_not_lost():
    net = fabric()
    (large,) = streams(net, [(4, 0)])
    (small,) = streams(net, [(5, 0)], every_t=1, size=16 * 4096)
    measure(net, [large, small], SETTLING_T)
    shares = measure(net, [large, small], 100)
    assert shares[1] == pytest.approx(16 / 59, rel=0.05)
    assert sum(shares) > 0.95


def test_under_the_fixed_window_nobody_shares():
    """What the fairness of the others is due to."""
    net = fabric(congestion_control="fixed")
    flows = streams(net, INCASTS["7 to 1"][0])
    measure(net, flows, SETTLING_T)
    trimmed = net.ports.total("trimmed", last_hop=True)
    measure(net, flows, 20)
    assert net.ports.total("trimmed", last_hop=True) > trimmed + 1000


def test_a_plane_with_a_deep_queue_is_not_taken_for_a_plane_that_loses():
    """Three hosts may use plane 0 only, so its last hop holds more than T of packets while the others hold none: all
    that a fourth host sends over plane 0 is overtaken by packets sent T later. None is lost, so no EV is to blame."""
    net = fabric()
    for source in (5, 6, 7):
        net.hosts[source].deny(0, [(plane, uplink) for plane in (1, 2, 3) for uplink in range(4)])
    flows = streams(net, [(source, 0) for source in (4, 5, 6, 7)])
    deepest = dict.fromkeys(range(4), 0)

    def note(*_):
        for plane in deepest:
            deepest[plane] = max(deepest[plane], net.ports.last_hop_backlog_ns(0, plane) / T)

    net.taps.append(note)
    measure(net, flows, 100)
    assert deepest[0] > 1.4
    assert max(deepest[plane] for plane in (1, 2, 3)) < 0.5
    assert nothing_blamed(net)


# --- two flows on one EV: P1 Fig. 14 ---


def two_flows_on_one_ev(seed):
    """One plane, two T1, one EV in use and one in reserve. At full rate a queue of 1 BDP fills within the round trip
    that the first mark takes, so some packets are trimmed on the way; none is lost."""
    net = fabric(hosts=4, planes=1, uplinks=2, ev_active=1, seed=seed)
    flows = streams(net, [(0, 2)])
    net.run(within=20 * T, must=False)
    before = net.hosts[0].path_packets(2)
    a = max((0, 1), key=lambda uplink: before[0, uplink])
    net.hosts[1].deny(3, [(0, 1 - a)])
    flows += streams(net, [(1, 3)])
    net.run(within=20 * T, must=False)
    return net, flows, a


def test_ecn_alone_moves_a_flow_from_the_ev_that_another_was_forced_on():
    """A chance mark may send it back, as a rule when 64 T are over; it meets the other flow and leaves in a few T."""
    stayed = by_ecn = 0
    for seed in range(1, 9):
        net, flows, a = two_flows_on_one_ev(seed)
        moved = net.hosts[0].path_packets(2)
        shares = measure(net, flows, 40)
        after = net.hosts[0].path_packets(2)
        if after[0, a] == moved[0, a]:
            stayed += 1
            assert min(shares) * 4 >= 0.94
        shares = measure(net, flows, 200)
        later = net.hosts[0].path_packets(2)
        assert later[0, a] - after[0, a] < 0.1 * (later[0, 1 - a] - after[0, 1 - a])
        assert min(shares) * 4 >= 0.91
        assert nothing_blamed(net)
        assert sums(net, "retransmitted")["retransmitted"] == sums(net, "lost_trimmed")["lost_trimmed"] <= 150
        changes = [e for e in net.events_of(EvChanged, 0) if e.uplink == a and e.new is EvState.SKIP]
        by_ecn += changes[0].trigger == "ecn"
    assert stayed >= 6
    assert by_ecn >= 3, "the queue may also be full when the first mark is back"


# --- an EV that loses packets: P1 Figs. 12, 13 ---


def test_an_ev_that_loses_a_fifth_is_replaced_within_3_t_and_goodput_stays():
    net = fabric(hosts=4, uplinks=2, ev_active=4)
    flows = streams(net, [(0, 2), (2, 0)])
    measure(net, flows, 20)
    used = net.hosts[0].path_packets(2)
    a = max((0, 1), key=lambda uplink: used[0, uplink])
    when = []
    net.listeners.append(lambda host, event: when.append((net.now, event)) if not host and bad(event) else None)
    net.ports.fabric.add_rule(net.ports.uplink(0, 0, a).name, "far", PortRule("drop", 0.2, source=0, destination=2))
    bins = [measure(net, flows, 5) for _ in range(8)]
    assert min(min(shares) for shares in bins) > 0.95
    (now, event), *more = when
    assert (event.plane, event.uplink, more) == (0, a, [])
    assert now - event.first_lost_tx_ns < 3 * T
    assert not net.events_of(PlaneChanged)
    planes = [sum(net.hosts[0].path_packets(2)[plane, uplink] for uplink in range(2)) for plane in range(4)]
    assert max(planes) - min(planes) <= 1


# --- less capacity: P1 Fig. 19 ---


def cut_link(net, planes, uplink, dead=True):
    """Between the T0s of group 0 and one T1, both ways."""
    change = net.ports.fabric.ports_down if dead else net.ports.fabric.ports_up
    change([net.ports.uplink(0, plane, uplink).near for plane in planes])


@pytest.mark.nightly
def test_links_removed_one_by_one_leave_what_is_left():
    """In all planes alike: 3 of 4, and back (Fig. 19b)."""
    net = fabric()
    flows = streams(net, ACROSS)
    measure(net, flows, 10)
    for uplink, dead, left in ((0, True, 3), (1, True, 2), (2, True, 1), (2, False, 2), (1, False, 3), (0, False, 4)):
        cut_link(net, range(4), uplink, dead)
        measure(net, flows, 30)
        total = sum(measure(net, flows, 30)) / 4
        assert total == pytest.approx(left / 4, rel=0.05), (uplink, dead)
    assert sums(net, "qp_errors", "data_on_bad_ev") == {"qp_errors": 0, "data_on_bad_ev": 0}


def test_a_plane_with_less_capacity_is_the_bottleneck_of_all():
    """Planes carry the same, so the poor one decides (P1 section 4). Trimmed packets go again on any plane, so a little
    more comes through than its share."""
    net = fabric()
    flows = streams(net, ACROSS)
    measure(net, flows, 10)
    for uplink, left in ((0, 3), (1, 2)):
        cut_link(net, [0], uplink)
        measure(net, flows, 30)
        total = sum(measure(net, flows, 60)) / 4
        assert 0.95 * left / 4 < total < 1.25 * left / 4
    for source, sink in ACROSS:
        packets = net.hosts[source].path_packets(sink)
        planes = [sum(packets[plane, uplink] for uplink in range(4)) for plane in range(4)]
        assert max(planes) - min(planes) <= 1


@pytest.mark.parametrize(("flows", "left"), [(1, 1.0), (4, 13 / 16)])
@pytest.mark.nightly(keep=1)
def test_a_link_at_a_quarter_of_its_rate_costs_its_part_of_the_plane(flows, left):
    """One flow does not notice: its four EVs share the plane's load evenly, and each needs a quarter of a port."""
    net = fabric()
    net.ports.fabric.set_rate(net.ports.uplink(0, 0, 1).name, RATE // 4)
    running = streams(net, ACROSS[:flows])
    measure(net, running, 40)
    total = sum(measure(net, running, 100)) / flows
    assert 0.95 * left < total < 1.1 * left
    assert sums(net, "qp_errors", "timeouts") == {"qp_errors": 0, "timeouts": 0}
