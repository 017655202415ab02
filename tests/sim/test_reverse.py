"""Stories of the way back."""

from itertools import pairwise

from mrc_testbed.hosts.mrc import wire
from tests.sim.simnet import Net, T, pattern
from tests.sim.test_paths import endless
from tests.sim.test_transfer import PACKET, transfer


def sack_paths(net, host=1):
    """Collects (plane, uplink) of the SACKs a host sends from now on."""
    seen = []

    def tap(src, token, traffic_class, packet):
        if src == host and packet[0] == wire.SACK:
            seen.append(token[1:])

    net.taps.append(tap)
    return seen


def test_a_receiver_probes_once_a_round_trip_and_answers_on_one_ev_a_plane():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=40 * T, must=False)
    probes = net.counters(1)["reverse_probes_sent"]
    seen = sack_paths(net)
    net.run(within=10 * T, must=False)
    assert 30 <= probes <= 41
    assert 7 <= net.counters(1)["reverse_probes_sent"] - probes <= 11
    changes = sum(a != b for plane in range(4) for a, b in pairwise([s for s in seen if s[0] == plane]))
    assert {plane for plane, _ in seen} == {0, 1, 2, 3}
    assert changes <= 11, "an EV stays until a probe names another"
    stop()


def test_a_link_dead_only_on_the_way_back_stops_carrying_sacks():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=20 * T, must=False)
    net.cut(plane=1, uplink=1, src=1)
    net.run(within=40 * T, must=False)
    (chosen,) = net.hosts[1]._peers[0].reverse._chosen[1]
    assert chosen.uplink != 1
    seen = sack_paths(net)
    net.run(within=30 * T, must=False)
    assert (1, 1) not in seen
    assert net.counters()["retransmitted"] == 0
    stop()


def test_who_asks_for_an_answer_gets_it_by_the_path_that_the_question_took():
    """A sender asks when it may send no more: the next packet, and the next answer, may be long in coming. In a fabric
    of one plane that answer, lost with the link that it came by, was silence until the timer blamed every path."""
    net = Net(planes=1)
    flow = net.join()
    seen, asked = sack_paths(net), []

    def note(src, token, traffic_class, packet):
        if src == 0 and packet[0] <= wire.LAST_DATA_OPCODE:
            asked.append(token[1:])

    net.taps.append(note)
    peer = net.hosts[1]._peers[0]
    for path in peer.paths:
        peer.reverse.learn(path)
        flow.write(pattern(4 * PACKET))
        net.run(within=10 * T, must=False)
        assert seen[-1] == asked[-1], "the last of four, so that a SACK was due in any case"
    assert len(net.completed()) == 4


def test_in_a_fabric_of_one_plane_answers_take_two_evs_in_turn():
    """One dead way back is then not silence, but half of the answers."""
    net = Net(planes=1)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=20 * T, must=False)
    chosen = [path.uplink for path in net.hosts[1]._peers[0].reverse._chosen[0]]
    assert len(set(chosen)) == 2
    taken = [net.hosts[1]._peers[0].reverse.path(0).uplink for _ in range(6)]
    assert taken in (chosen * 3, chosen[::-1] * 3)
    stop()


def test_a_host_that_sends_too_needs_no_probes():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    flow.write(pattern(900 * PACKET), source=1)
    net.run(within=10 * T, must=False)
    assert net.counters(1)["reverse_probes_sent"] <= 1
    used = {path for path, count in net.hosts[1].path_packets(0).items() if count}
    chosen = net.hosts[1]._peers[0].reverse._chosen
    assert {(path.plane, path.uplink) for paths in chosen.values() for path in paths} <= used
    assert len(chosen) == 4
    stop()


def test_nothing_is_probed_when_nothing_comes():
    net = Net()
    flow = net.join()
    transfer(net, flow, pattern(20 * PACKET))
    net.run(within=5 * T, must=False)
    sent = net.counters(1)["probes_sent"]
    net.run(within=50 * T, must=False)
    assert net.counters(1)["probes_sent"] == sent


def test_a_denied_ev_is_no_way_back():
    net = Net()
    flow = net.join()
    net.hosts[1].deny(0, [(0, u) for u in range(3)])
    seen = sack_paths(net)
    stop = endless(net, flow)
    net.run(within=30 * T, must=False)
    assert {uplink for plane, uplink in seen if plane == 0} == {3}
    stop()
