"""Stories of paths that die and come back."""

import pytest

from mrc_testbed.hosts.mrc.evstate import EvState
from tests.sim.simnet import EvChanged, Net, PlaneChanged, QpError, T, pattern
from tests.sim.test_transfer import PACKET, transfer


def endless(net, flow, size=200 * PACKET):
    """Keep one write going for ever: posts the next when one completes. Returns a function that stops it."""
    state = {"posted": 0, "on": True}
    data = pattern(size)

    def more(*_):
        while state["on"] and state["posted"] - len(net.completed()) < 2:
            state["posted"] += 1
            flow.write(data, wr_id=state["posted"])

    net.taps.append(more)
    more()

    def stop():
        state["on"] = False
        net.run(lambda: len(net.completed()) == state["posted"], within=200 * T)
        assert flow.region()[:size] == data

    return stop


def retired(net):
    return [e for e in net.events_of(EvChanged) if e.new is EvState.ASSUMED_BAD]


def restored(net):
    return [e for e in net.events_of(EvChanged) if e.new is EvState.GOOD]


def test_one_dead_ev_is_left_within_a_few_round_trips():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(plane=1, uplink=2, src=0)
    cut_at = net.now
    net.run(within=20 * T, must=False)
    (event,) = retired(net)
    assert (event.plane, event.uplink, event.old) == (1, 2, EvState.GOOD)
    assert cut_at <= event.first_lost_tx_ns <= event.last_tx_ns <= cut_at + 4 * T
    # 24 packets a T on each of the 16 paths / 4: what was sent into the hole until it was noticed, and no more.
    assert net.counters()["retransmitted"] <= 20
    stop()
    assert net.counters()["data_on_bad_ev"] == 0
    planes = net.plane_packets()
    assert max(planes) - min(planes) <= 1


def test_losses_are_counted_on_the_path_that_had_them():
    """Each packet taken for lost there was sent again; nothing is counted on the others."""
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(plane=1, uplink=2, src=0)
    net.run(within=20 * T, must=False)
    stop()
    lost = {path: gone for path, _, gone in net.hosts[0].path_counts(1) if gone}
    assert list(lost) == [(1, 2)]
    assert lost[1, 2] == net.counters()["retransmitted"] > 0
    assert {path: sent for path, sent, _ in net.hosts[0].path_counts(1)} == net.hosts[0].path_packets(1)


def test_a_dead_t1_in_every_plane_costs_one_burst_of_losses():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(uplink=0)
    net.run(within=12 * T, must=False)
    losses = net.counters()["retransmitted"]
    assert 4 <= losses <= 80
    assert {(e.plane, e.uplink) for e in retired(net)} == {(p, 0) for p in range(4)}
    net.run(within=30 * T, must=False)
    assert net.counters()["retransmitted"] == losses
    assert not net.events_of(PlaneChanged)
    stop()


def test_a_dead_plane_leaves_the_rotation_and_the_rest_goes_on():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(plane=3)
    net.run(lambda: net.events_of(PlaneChanged), within=8 * T)
    (event,) = net.events_of(PlaneChanged)
    assert (event.plane, event.usable) == (3, False)
    before = net.plane_packets()
    done = len(net.completed())
    net.run(within=20 * T, must=False)
    after = net.plane_packets()
    assert after[3] == before[3]
    gained = [after[plane] - before[plane] for plane in range(3)]
    assert max(gained) - min(gained) <= 1
    # Three quarters of 4 x 14.7 packets a T.
    assert sum(gained) > 0.85 * 3 * 14.5 * 20
    assert len(net.completed()) > done
    net.heal(plane=3)
    net.run(lambda: any(e.usable for e in net.events_of(PlaneChanged)), within=30 * T)
    stop()
    assert net.counters()["data_on_bad_ev"] == 0
    assert net.counters()["qp_errors"] == 0


def test_all_paths_die_and_heal():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut()
    net.run(within=30 * T, must=False)
    assert not any(net.hosts[0]._peers[1].evs.usable(p) for p in range(4))
    sent = net.counters()["data_sent"]
    net.run(within=10 * T, must=False)
    assert net.counters()["data_sent"] == sent
    net.heal()
    done = len(net.completed())
    net.run(lambda: len(net.completed()) > done, within=40 * T)
    stop()
    assert net.counters()["data_on_bad_ev"] == 0
    assert not net.events_of(QpError)


def test_all_paths_dead_for_ever_end_the_qp():
    net = Net()
    flow = net.join()
    flow.write(pattern(300 * PACKET), wr_id=9)
    net.run(within=2 * T, must=False)
    net.cut()
    net.run(lambda: net.events_of(QpError), within=800 * T)
    assert net.events_of(QpError)[0].reason == "retries exceeded"
    assert net.counters()["qp_errors"] == 1
    assert not net.completed()
    sent = net.counters()["data_sent"]
    net.run(within=50 * T, must=False)
    assert net.counters()["data_sent"] == sent


def test_a_write_posted_while_no_plane_is_usable_ends_the_qp_too():
    net = Net()
    flow = net.join()
    net.cut()
    flow.write(pattern(PACKET * 100))
    net.run(lambda: net.events_of(QpError), within=800 * T)
    assert net.counters()["data_on_bad_ev"] == 0


def test_an_ev_returns_after_probes_and_is_used_again():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.cut(plane=0, uplink=1, src=0)
    net.run(lambda: retired(net), within=10 * T)
    count = net.hosts[0].path_packets(1)[0, 1]
    net.run(within=40 * T, must=False)
    assert net.hosts[0].path_packets(1)[0, 1] == count
    assert not restored(net)
    net.heal(plane=0, uplink=1)
    healed = net.now
    net.run(lambda: restored(net), within=30 * T)
    # Longest pause 16 T + 25 %, then three answers a round trip apart.
    assert net.now - healed <= 24 * T
    net.run(within=5 * T, must=False)
    assert net.hosts[0].path_packets(1)[0, 1] > count + 10
    assert net.counters()["evs_restored"] == 1
    stop()


def test_a_path_that_fails_again_must_prove_itself_longer():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    answers = []
    for _ in range(3):
        already, before = len(retired(net)), len(restored(net))
        net.cut(plane=0, uplink=1)
        net.run(lambda n=already: len(retired(net)) > n, within=20 * T)
        net.heal(plane=0, uplink=1)
        answered = net.counters()["probes_answered"]
        net.run(lambda n=before: len(restored(net)) > n, within=60 * T)
        answers.append(net.counters()["probes_answered"] - answered)
    assert answers == [3, 6, 12]
    stop()


@pytest.mark.parametrize("seed", range(6))
def test_the_last_path_is_taken_back_though_it_loses_packets(seed):
    net = Net(planes=2, uplinks=3, seed=seed)
    net.worsen(loss=0.05)
    flow = net.join()
    net.cut(plane=0)
    net.cut(plane=1, uplink=0)
    net.cut(plane=1, uplink=1)
    data = pattern(700_000)
    flow.write(data)
    net.run(lambda: len(net.completed()) == 1, within=300 * T)
    assert flow.region()[: len(data)] == data
    assert not net.events_of(QpError)


def test_a_lost_ev_is_replaced_by_a_backup_of_the_same_plane():
    net = Net(uplinks=8, ev_active=16)
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=5 * T, must=False)
    used = {path for path, count in net.hosts[0].path_packets(1).items() if count}
    assert [sum(plane == p for plane, _ in used) for p in range(4)] == [4, 4, 4, 4]
    victim = min(path for path in used if path[0] == 2)
    net.cut(plane=2, uplink=victim[1])
    net.run(lambda: retired(net), within=10 * T)
    net.run(within=5 * T, must=False)
    now_used = {path for path, count in net.hosts[0].path_packets(1).items() if count}
    assert len(now_used) == 17
    ((plane, _),) = now_used - used
    assert plane == 2
    net.heal(plane=2)
    net.run(lambda: restored(net), within=30 * T)
    count = net.hosts[0].path_packets(1)[victim]
    net.run(within=10 * T, must=False)
    assert net.hosts[0].path_packets(1)[victim] == count, "the plane was full: it came back as a backup"
    stop()


def test_a_path_dead_only_on_the_way_back_is_survived():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(plane=1, uplink=1, src=1)
    net.run(within=60 * T, must=False)
    assert len(net.completed()) > 10
    stop()
    assert net.counters()["qp_errors"] == 0


def test_warm_up_probes_report_silent_paths_and_rtt():
    net = Net()
    net.cut(plane=2, uplink=3, src=1)
    net.hosts[0].probe_paths(1, net.now)
    net.run(within=3 * T, must=False)
    report = net.hosts[0].path_report(1)
    assert report.silent == [(2, 3)]
    assert len(report.answered) == 15
    assert report.rtt_ns == pytest.approx(T, rel=0.01)
    assert not net.events_of(EvChanged)


def test_dead_paths_at_the_start_cost_one_loss_burst_each():
    net = Net()
    net.cut(plane=0, uplink=0)
    net.cut(plane=3, uplink=2)
    flow = net.join()
    transfer(net, flow, pattern(400 * PACKET))
    assert {(e.plane, e.uplink) for e in retired(net)} == {(0, 0), (3, 2)}
    assert net.counters()["retransmitted"] < 40


def test_answers_must_be_consecutive():
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.cut(plane=0, uplink=1, src=0)
    net.run(lambda: retired(net), within=10 * T)
    net.heal(plane=0, uplink=1)
    asked = []

    def every_third(src, token, traffic_class, packet):
        if src == 0 and token == (1, 0, 1) and packet[0] == 0xD8:
            asked.append(net.now)
            return len(asked) % 3 != 0
        return True

    net.taps.append(every_third)
    net.run(lambda: len(asked) > 12, within=200 * T)
    assert not restored(net)
    stop()


def test_the_retry_counter_starts_again_after_progress():
    net = Net(seed=4)
    flow = net.join()
    stop = endless(net, flow)
    for _ in range(3):
        timeouts = net.counters()["timeouts"]
        net.cut()
        net.run(lambda n=timeouts: net.counters()["timeouts"] >= n + 6, within=100 * T)
        net.heal()
        done = len(net.completed())
        net.run(lambda n=done: len(net.completed()) > n, within=60 * T)
    assert net.counters()["timeouts"] >= 18
    assert not net.events_of(QpError)
    stop()


def test_a_dead_path_takes_its_own_losses_only():
    """Losing packets of one plane must not hold the others back longer than a detection time."""
    net = Net()
    flow = net.join()
    stop = endless(net, flow)
    net.run(within=10 * T, must=False)
    net.cut(plane=2)
    worst, last = 0, net.now

    def arrivals(src, token, traffic_class, packet):
        nonlocal worst, last
        if src == 0 and packet[0] <= 0xCB:
            worst, last = max(worst, net.now - last), net.now

    net.taps.append(arrivals)
    net.run(within=30 * T, must=False)
    assert worst < 2 * T
    stop()
