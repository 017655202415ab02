"""Stories of EVs that meet congestion, are denied, or are the last of their plane."""

import itertools
from random import Random

import pytest

from mrc_testbed.hosts.common.errors import UnknownPathError
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.events import FloorHeld
from mrc_testbed.hosts.mrc.evstate import EvState
from tests.sim.simnet import EvChanged, Net, PlaneChanged, QpError, T, pattern
from tests.sim.test_loss import is_data
from tests.sim.test_paths import endless, restored, retired
from tests.sim.test_transfer import PACKET, transfer


def skipped(net):
    return [e for e in net.events_of(EvChanged) if e.new is EvState.SKIP]


def uses(net, ticks=10):
    """Data packets on each path during `ticks` T."""
    before = net.hosts[0].path_packets(1)
    net.run(within=ticks * T, must=False)
    return {path: count - before[path] for path, count in net.hosts[0].path_packets(1).items()}


def trim(net, wanted, dscp=wire.DSCP_TRIMMED, source=0):
    """Cut the payload off data packets of host `source`, of two, for which `wanted(token)` holds."""

    def tap(host, token, traffic_class, packet):
        if host != source or not is_data(packet) or not wanted(token):
            return True
        label, to = token[1] << 8 | token[2], net.hosts[1 - source]
        to.handle_datagram(memoryview(packet[:36]), source, label, 0xC000, dscp << 2, net.now, net.now)
        return False

    net.taps.append(tap)
    return tap


def test_ecn_on_one_ev_moves_its_traffic_to_a_backup_and_nothing_is_lost():
    """The shape of P1's Fig. 14: one EV in use a plane, one in reserve."""
    net = Net(planes=2, uplinks=2, ev_active=2)
    flow = net.join()
    stop = endless(net, flow)
    used = uses(net)
    (first,) = [path for path, count in used.items() if path[0] == 0 and count]
    net.worsen(plane=0, uplink=first[1], ce=True)
    after = uses(net)
    assert after[first] < 0.2 * after[0, 1 - first[1]]
    assert after[0, 0] + after[0, 1] == pytest.approx(after[1, 0] + after[1, 1], abs=1)
    assert net.counters()["retransmitted"] == net.counters()["evs_retired"] == 0
    assert {(e.plane, e.uplink, e.trigger) for e in skipped(net)} == {(*first, "ecn")}
    stop()


@pytest.mark.parametrize("source", [0, 1])
def test_only_one_direction_nacks_trims(source):
    """Host 0 asks for trimmed packets, host 1 does not: what host 1 sends is asked for, what host 0 sends is inferred,
    and only there does a loss say that a queue may have been full."""
    net = Net(apart={1: {"trim_nack": False}}, switches_trim=True)
    flow = net.join()
    cut = []
    trim(net, lambda token: not cut and token[1:] == (1, 1) and not cut.append(token), source=source)
    flow.write(pattern(100 * PACKET), source=source)
    net.run(lambda: net.completed(source), within=20 * T)
    assert len(cut) == net.counters(source)["retransmitted"] == 1
    assert net.counters(source)["nacks_received"] == source
    assert net.hosts[source]._peers[1 - source].timing.trims_tell is bool(source)


def test_an_ev_in_skip_without_a_backup_is_passed_over_for_a_turn():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=5 * T, must=False)
    net.worsen(plane=2, uplink=1, ce=True)
    counts = uses(net, 20)
    others = [count for path, count in counts.items() if path[0] == 2 and path[1] != 1]
    assert 0 < counts[2, 1] < 0.6 * min(others)
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1
    assert net.counters()["data_on_bad_ev"] == net.counters()["data_on_skip_ev"] == 0
    stop()


def test_ecn_everywhere_shifts_nothing_between_planes():
    net = Net()
    flow = net.join()
    net.mark_ce = True
    stop = endless(net, flow)
    net.run(within=20 * T, must=False)
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1
    counters = net.counters()
    assert counters["data_on_skip_ev"] > 0
    assert counters["data_on_bad_ev"] == counters["evs_retired"] == 0
    stop()


def test_ecn_on_a_plane_with_one_ev_keeps_it_in_use():
    net = Net(uplinks=1)
    flow = net.join()
    net.worsen(plane=1, ce=True)
    transfer(net, flow, pattern(200 * PACKET))
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1
    assert not net.events_of(PlaneChanged)


def test_adaptive_a_trimmed_packet_rests_its_ev_longer_than_a_mark():
    net = Net(ev_selection="adaptive")
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=5 * T, must=False)
    trim(net, lambda token: token[1:] == (3, 0))
    counts = uses(net, 20)
    others = [count for path, count in counts.items() if path[0] == 3 and path[1] != 0]
    assert counts[3, 0] < 0.35 * min(others)
    assert {(e.plane, e.uplink, e.trigger) for e in skipped(net)} == {(3, 0, "trimmed")}
    assert net.counters()["evs_retired"] == 0
    net.taps.pop()
    stop()


@pytest.mark.parametrize("dscp", [wire.DSCP_TRIMMED, wire.DSCP_TRIMMED_LASTHOP])
def test_a_trimmed_packet_is_asked_for_at_once_and_goes_again_by_another_ev(dscp):
    net = Net()
    flow = net.join()
    sent = []
    cut = []

    def once(token):
        sent.append((net.now, token))
        if len(sent) != 20:
            return False
        cut.append((net.now, token))
        return True

    tap = trim(net, once, dscp)
    resent = []

    def note(src, token, traffic_class, packet):
        if is_data(packet) and packet[8] & 0x20:
            resent.append((net.now, token))

    net.taps.append(note)
    flow.write(pattern(100 * PACKET))
    net.run(net.completed, within=20 * T)
    assert len(cut) == len(resent) == 1
    assert resent[0][0] - cut[0][0] <= T, "the NACK's way back, and no more"
    assert resent[0][1] != cut[0][1]
    counters = net.counters()
    assert counters["retransmitted"] == counters["nacks_received"] == 1
    assert counters["timeouts"] == counters["evs_retired"] == counters["reliability_probes_sent"] == 0
    net.taps.remove(tap)


def test_adaptive_what_was_sent_before_an_ev_went_to_skip_does_not_skip_it_again():
    net = Net(planes=1, ev_selection="adaptive")
    peer = net.hosts[0]._peers[1]
    path = peer.paths[0]
    peer.congest(path, False, sent_ns=90, now_ns=100)
    peer.congest(path, False, sent_ns=99, now_ns=110)
    assert path.penalty == 1
    peer.congest(path, False, sent_ns=105, now_ns=120)
    assert path.penalty == 3, "met it again: twice as long"
    peer.selection.on_arrival(path, sent_ns=119)
    assert path.congested == 2, "older than the last rest"
    peer.selection.on_arrival(path, sent_ns=125)
    assert path.congested == 0


def test_adaptive_an_ev_swapped_out_for_congestion_is_not_swapped_in_again_at_once():
    net = Net(planes=1, uplinks=2, ev_active=1, ev_selection="adaptive")
    peer = net.hosts[0]._peers[1]
    used = peer.selection.take()
    other = next(path for path in peer.paths if path is not used)
    peer.congest(used, False, sent_ns=net.now, now_ns=net.now)
    assert [peer.selection.take() for _ in range(3)] == [other] * 3
    later = net.now + 10 * T
    peer.congest(other, False, sent_ns=later, now_ns=later)
    assert [peer.selection.take() for _ in range(3)] == [other] * 3
    peer.selection.on_arrival(other, sent_ns=later)
    later = net.now + 100 * T
    peer.congest(other, False, sent_ns=later, now_ns=later)
    assert peer.selection.take() is used
    peer.congest(used, False, sent_ns=later + T, now_ns=later + T)
    assert peer.selection.take() is other, "congested twice in a row, any other is better"


def spec_peer(**shape):
    """A peer with one plane under the rules of the specification's readers."""
    return Net(**{"planes": 1, "ev_selection": "spec"} | shape).hosts[0]._peers[1]


@pytest.mark.parametrize("trimmed", [False, True])
def test_spec_a_mark_and_a_trim_cost_one_turn(trimmed):
    peer = spec_peer()
    path = peer.paths[0]
    peer.congest(path, trimmed, sent_ns=0, now_ns=100)
    assert path.state is EvState.SKIP
    assert path not in [peer.selection.take() for _ in range(3)], "the three others have their turn"
    assert path in [peer.selection.take() for _ in range(5)]
    for _ in range(5):
        assert path.state is EvState.GOOD
        peer.congest(path, trimmed, sent_ns=0, now_ns=100)
        assert path.penalty == 1, "however often it was congested before"
        for _ in range(4):
            peer.selection.take()


def test_spec_feedback_in_skip_is_ignored():
    peer = spec_peer()
    path = peer.paths[0]
    for trimmed in (False, True, True):
        peer.congest(path, trimmed, sent_ns=0, now_ns=100)
    assert path.penalty == 1
    assert peer._context.counters.evs_skipped == 1


def test_spec_one_packet_restores_at_most_one_ev():
    peer = spec_peer(uplinks=8)
    for path in peer.paths[:7]:
        peer.congest(path, False, sent_ns=0, now_ns=100)
    for packet in range(40):
        before = sum(path.state is EvState.SKIP for path in peer.paths)
        peer.selection.take()
        after = sum(path.state is EvState.SKIP for path in peer.paths)
        assert before - after in (0, 1), packet
    assert after == 0


def test_adaptive_one_packet_restores_all_that_it_passes():
    peer = Net(planes=1, uplinks=8, ev_selection="adaptive").hosts[0]._peers[1]
    for path in peer.paths[:7]:
        peer.congest(path, False, sent_ns=0, now_ns=100)
    for _ in range(2):
        peer.selection.take()
    assert all(path.state is EvState.GOOD for path in peer.paths)


def test_spec_of_backups_in_skip_one_packet_restores_one():
    peer = spec_peer(uplinks=6, ev_active=3)
    for _ in range(3):
        active = peer.selection.active(0)
        peer.congest(active[0], False, sent_ns=0, now_ns=100)
    assert all(path.state is EvState.GOOD for path in peer.selection.active(0)), "backups took their places"
    resting = [sum(path.state is EvState.SKIP for path in peer.paths)]
    for _ in range(12):
        peer.selection.take()
        resting.append(sum(path.state is EvState.SKIP for path in peer.paths))
    assert resting[0] == 3
    assert resting[-1] == 0
    assert all(a - b in (0, 1) for a, b in itertools.pairwise(resting))


def test_a_trim_on_the_last_hop_blames_nobody():
    net = Net()
    flow = net.join()
    trim(net, lambda token: token[2] == 1, wire.DSCP_TRIMMED_LASTHOP)
    flow.write(pattern(200 * PACKET))
    net.run(within=5 * T, must=False)
    assert net.counters()["lost_trimmed_lasthop"] > 10
    assert not net.events_of(EvChanged)


def test_an_ev_in_skip_returns_after_its_turns_and_no_later():
    net = Net(planes=1)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=5 * T, must=False)
    net.worsen(uplink=2, ce=True)
    net.run(lambda: skipped(net), within=5 * T)
    net.worsen(uplink=2, ce=False)
    net.run(within=5 * T, must=False)
    last = net.events_of(EvChanged)[-1]
    assert (last.old, last.new, last.trigger) == (EvState.SKIP, EvState.GOOD, "rotated")
    counts = uses(net)
    assert max(counts.values()) - min(counts.values()) <= 2
    stop()


def test_a_marked_probe_answer_brings_an_ev_back_as_skip():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.cut(plane=1, uplink=1)
    net.run(lambda: retired(net), within=10 * T)
    net.heal(plane=1, uplink=1)
    net.mark_probes = True
    net.run(lambda: skipped(net), within=40 * T)
    event = skipped(net)[0]
    assert (event.old, event.trigger) == (EvState.ASSUMED_BAD, "probe_congested")
    net.run(lambda: restored(net), within=5 * T)
    assert net.counters()["evs_restored"] == 1
    stop()


def test_a_loss_in_skip_retires_the_ev():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.worsen(plane=0, uplink=3, ce=True)
    net.run(lambda: skipped(net), within=5 * T)
    net.cut(plane=0, uplink=3)
    net.run(lambda: retired(net), within=10 * T)
    assert retired(net)[0].old in (EvState.SKIP, EvState.GOOD)
    assert net.counters()["data_on_bad_ev"] == 0
    stop()


# --- denied ---


def test_a_denied_ev_carries_nothing_from_the_start():
    net = Net()
    net.hosts[0].deny(1, [(1, 0), (1, 2)])
    flow = net.join()
    transfer(net, flow, pattern(300 * PACKET))
    counts = net.hosts[0].path_packets(1)
    assert counts[1, 0] == counts[1, 2] == 0
    assert sum(counts[1, u] for u in (1, 3)) == pytest.approx(75, abs=1)


def test_a_plane_denied_in_mid_run_is_left_at_once_and_returns_by_probes():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=5 * T, must=False)
    whole = [(3, u) for u in range(4)]
    net.hosts[0].deny(1, whole)
    counts = uses(net, 30)
    assert not any(counts[path] for path in whole)
    assert net.counters()["retransmitted"] == 0
    assert [e.usable for e in net.events_of(PlaneChanged)] == [False]
    net.hosts[0].allow(1, whole, net.now)
    net.run(lambda: len(restored(net)) == 4, within=15 * T)
    assert all(uses(net)[path] for path in whole)
    stop()


def test_losses_and_probes_do_not_free_a_denied_ev():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.cut(plane=1, uplink=1)
    net.run(lambda: retired(net), within=10 * T)
    net.heal(plane=1, uplink=1)
    net.hosts[0].deny(1, [(1, 1)])
    net.run(within=60 * T, must=False)
    assert not restored(net)
    assert net.events_of(EvChanged)[-1].new is EvState.DENIED
    stop()


def test_a_path_that_does_not_exist_cannot_be_denied():
    net = Net()
    with pytest.raises(UnknownPathError):
        net.hosts[0].deny(1, [(0, 0), (0, 9)])
    assert not net.events_of(EvChanged)


def test_everything_denied_ends_the_qp():
    net = Net()
    net.hosts[0].deny(1, [(p, u) for p in range(4) for u in range(4)])
    flow = net.join()
    flow.write(pattern(PACKET))
    net.run(lambda: net.events_of(QpError), within=800 * T)
    assert net.counters()["data_sent"] == 0


# --- the floor ---


def test_the_last_ev_of_a_lossy_plane_stays_in_use_and_is_reported_once():
    net = Net(uplinks=2)
    net.worsen(plane=2, loss=0.05)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=100 * T, must=False)
    held = net.events_of(FloorHeld)
    assert held
    assert {(e.plane, e.in_use) for e in held} == {(2, 1)}
    counters = net.counters()
    assert counters["floor_held"] > len(held)
    assert counters["data_on_bad_ev"] == 0
    assert not net.events_of(PlaneChanged)
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1
    stop()


def test_the_floor_does_not_hold_a_dead_plane():
    net = Net(uplinks=1)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(plane=1)
    net.run(lambda: net.events_of(PlaneChanged), within=5 * T)
    assert not net.events_of(FloorHeld)
    stop()


def test_a_wider_floor_keeps_more_evs():
    net = Net(planes=1, uplinks=8, ev_min_active=4)
    net.worsen(loss=0.02)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=60 * T, must=False)
    assert net.hosts[0]._peers[1].evs.count(0) >= 4
    assert {e.in_use for e in net.events_of(FloorHeld)} == {4}
    stop()


# --- which EV a packet takes ---

RULES = pytest.mark.parametrize("rules", ["spec", "adaptive"])


@RULES
@pytest.mark.parametrize("uplinks", [2, 3])
def test_a_packet_does_not_take_the_ev_that_it_brings_back_from_skip(rules, uplinks):
    """With two EVs a plane a tenth of all marks cost their EV nothing."""
    peer = Net(planes=1, uplinks=uplinks, ev_selection=rules).hosts[0]._peers[1]
    for number in range(400):
        resting = [path for path in peer.paths if path.penalty]
        path = peer.selection.take()
        assert path not in resting or len(resting) == uplinks, number
        peer.selection.on_arrival(path, number)
        if number % 3 == 0:
            peer.congest(path, False, sent_ns=number, now_ns=number)


@RULES
def test_with_all_evs_of_a_plane_in_skip_the_one_in_use_is_not_the_one_passed_over(rules):
    peer = Net(planes=1, uplinks=2, ev_selection=rules).hosts[0]._peers[1]
    for _ in range(100):
        first, second = peer.paths
        for path in peer.paths:
            peer.congest(path, False, sent_ns=0, now_ns=0)
        assert peer.selection.take() is first, "skipped longest ago"
        assert [first.penalty > 0, second.penalty > 0] == [True, False]
        while any(path.penalty for path in peer.paths):
            peer.selection.on_arrival(peer.selection.take(), 1)


@RULES
@pytest.mark.parametrize("shape", [{"uplinks": 1}, {"uplinks": 2, "ev_active": 3}])
def test_a_retransmission_whose_plane_has_no_other_ev_takes_another_plane(rules, shape):
    peer = Net(**{"planes": 3, "ev_selection": rules} | shape).hosts[0]._peers[1]
    sent, draw = [0, 0, 0], Random(1)
    for _ in range(300):
        avoid = draw.choice([*peer.paths, None, None])
        turn = peer.selection.turn
        path = peer.selection.take(avoid)
        assert path is not avoid
        assert path.plane == turn or (shape["uplinks"] == 1 and avoid is not None), "a backup of its plane goes first"
        sent[path.plane] += 1
    assert max(sent) - min(sent) <= 2, "the plane that was passed over has its turn next"


def test_a_retransmission_with_one_path_left_takes_it():
    peer = Net(planes=1, uplinks=1).hosts[0]._peers[1]
    assert [peer.selection.take(avoid=peer.paths[0]) for _ in range(3)] == 3 * peer.paths


def test_a_plane_that_closes_loses_the_turn_that_it_waits_for():
    peer = Net(planes=3, uplinks=1).hosts[0]._peers[1]
    selection = peer.selection
    waits = selection.turn
    selection.take(avoid=peer.paths[waits])
    assert selection.turn == waits
    peer.evs.close(waits)
    assert {selection.take().plane for _ in range(4)} == {0, 1, 2} - {waits}
    peer.evs.open(waits)
    assert {selection.take().plane for _ in range(3)} == {0, 1, 2}
