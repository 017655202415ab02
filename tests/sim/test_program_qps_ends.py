"""QPs of programs: peers that are not ready yet, and ends that leave."""

from random import Random

import pytest

from mrc_testbed.hosts.common.errors import QpStateError, UnknownQpError
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.mrc.loss_recovery import PATIENCE_NS
from tests.sim.programs import MS, PAYLOAD, TRANSPORTS, Pair, T, is_data, joined, network, packets_of
from tests.sim.simnet import EvChanged, QpError, pattern

ALL = pytest.mark.parametrize("transport", TRANSPORTS)
SHORT, LONG = pattern(3 * PAYLOAD + 5), pattern(40 * PAYLOAD, 2)
TO_THE_LAST = 100_000 * T


# --- starts ---


def started(transport, delay_ns, seed=1, loss=0.0, messages=8, **config):
    """End 0 sends `delay_ns` before end 1 leaves INIT."""
    net = network(transport, seed, **config)
    net.worsen(loss=loss)
    pair = Pair(net)
    pair.ends[0].receive_from(pair.ends[1])
    pair.ends[0].send()
    for number in range(messages):
        pair.write(SHORT, at=number * len(SHORT), immediate=number)
    net.run(within=delay_ns, must=False)
    assert not pair.ends[0].failures()
    assert not any(pair.ends[1].ram.times)
    pair.ends[1].receive_from(pair.ends[0])
    return pair


@ALL
@pytest.mark.parametrize("delay_ns", [60 * MS, 2_500 * MS, 30_000 * MS, PATIENCE_NS - 1_000 * MS])
def test_nothing_is_held_against_a_peer_that_starts_late(transport, delay_ns):
    pair = started(transport, delay_ns)
    assert pair.net.counters(1)["refused_unknown_qp"] > 2, "what comes to a QP in INIT is dropped"
    assert not packets_of(pair.net, 1)
    pair.run_until_told(within=5000 * T)
    assert pair.ends[0].completed() == list(range(1, 9))
    assert pair.ends[1].delivered() == [(number, len(SHORT)) for number in range(8)]
    assert pair.ends[1].ram.bytes[: 8 * len(SHORT)] == SHORT * 8
    if transport == "mrc":
        assert pair.net.events_of(EvChanged, 0) == [], "no path is blamed"
        assert pair.net.counters()["timeouts"] == 0, "no try is counted"


@ALL
@pytest.mark.parametrize("seed", range(4))
def test_a_late_start_and_loss(transport, seed):
    pair = started(transport, 2_500 * MS, seed, loss=0.1)
    pair.run_until_told(within=5000 * T)
    assert pair.ends[0].completed() == list(range(1, 9))
    assert [immediate for immediate, _ in pair.ends[1].delivered()] == list(range(8))


@ALL
def test_a_peer_that_never_comes_is_given_up_in_the_end(transport):
    pair = Pair(network(transport))
    pair.ends[0].receive_from(pair.ends[1])
    pair.ends[0].send()
    pair.write(SHORT)
    begun = pair.net.now
    pair.net.run(pair.ends[0].failures, within=PATIENCE_NS + 10_000 * T)
    assert pair.ends[0].failures() == ["retries exceeded"]
    assert pair.net.now - begun > PATIENCE_NS


@ALL
def test_the_first_answer_ends_the_patience(transport):
    pair = started(transport, 2_500 * MS)
    pair.run_until_told(within=5000 * T)
    pair.net.cut()
    pair.write(SHORT)
    begun = pair.net.now
    pair.net.run(pair.ends[0].failures, within=TO_THE_LAST)
    assert pair.ends[0].failures() == ["retries exceeded"]
    assert pair.net.now - begun < PATIENCE_NS


def test_paths_are_blamed_after_the_first_answer():
    pair = started("mrc", 2_500 * MS)
    pair.run_until_told(within=5000 * T)
    pair.net.cut(plane=1, uplink=2)
    for _ in range(20):
        pair.write(LONG)
    pair.run_until_told(within=5000 * T)
    assert {(event.plane, event.uplink) for event in pair.net.events_of(EvChanged, 0)} == {(1, 2)}


def test_a_path_that_was_dead_before_the_first_answer_is_found_out():
    net = network("mrc")
    net.cut(plane=0, uplink=0)
    pair = Pair(net)
    pair.ends[0].receive_from(pair.ends[1])
    pair.ends[0].send()
    pair.write(LONG)
    net.run(within=1_000 * MS, must=False)
    pair.ends[1].receive_from(pair.ends[0])
    for _ in range(20):
        pair.write(LONG)
    pair.run_until_told(within=5000 * T)
    assert pair.ends[0].completed() == list(range(1, 22))
    assert {(event.plane, event.uplink) for event in net.events_of(EvChanged, 0)} == {(0, 0)}


@ALL
def test_a_stall_begins_with_the_first_answer(transport):
    pair = started(transport, 2_500 * MS)
    pair.run_until_told(within=5000 * T)
    assert not [event for event in pair.net.events[0] if type(event).__name__ == "StallEnded"]
    assert not pair.net.hosts[0].stalled(pair.net.now)


# --- ends that leave ---


def leaves_with_the_last(transport, seed, loss):
    """End 1 destroys its QP when it has the last immediate, while the last acknowledgements are lost."""
    pair = joined(transport, seed, **{} if transport == "mrc" else {"retries": 30})
    pair.net.worsen(loss=loss)
    last = 11

    def close(host, event):
        if host == 1 and getattr(event, "immediate", None) == last:
            assert pair.ends[1].endpoint.close_qp(pair.ends[1].qpn)

    pair.net.listeners.append(close)
    for number in range(last + 1):
        pair.write(SHORT, at=number * len(SHORT), immediate=number)
    pair.run_until_told(within=TO_THE_LAST)
    return pair, last


def assert_left_well(pair, last):
    assert pair.ends[0].failures() == []
    assert pair.ends[0].completed() == list(range(1, last + 2))
    assert pair.ends[1].ram.bytes[: (last + 1) * len(SHORT)] == SHORT * (last + 1)
    assert pair.ends[1].failures() == []


@ALL
@pytest.mark.parametrize("seed", range(25))
def test_a_lost_last_acknowledgement_is_given_again(transport, seed):
    assert_left_well(*leaves_with_the_last(transport, seed, 0.15))


@pytest.mark.nightly
@ALL
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_lost_last_acknowledgements_are_given_again(transport, seed):
    assert_left_well(*leaves_with_the_last(transport, seed, 0.2))


@ALL
def test_an_answer_is_lost_again_and_again(transport):
    """Every answer but probes' and the fifth is lost after the end has left."""
    pair = joined(transport)
    left, answers = [], []

    def drop(src, token, traffic_class, packet):
        if src == 1 and left:
            answers.append(packet)
            return len(answers) % 5 == 0
        return True

    def leave(host, event):
        if host == 1 and getattr(event, "immediate", None) == 5:
            left.append(pair.ends[1].endpoint.close_qp(pair.ends[1].qpn))

    pair.net.taps.append(drop)
    pair.net.listeners.append(leave)
    pair.write(SHORT, immediate=5)
    pair.run_until_told(within=TO_THE_LAST)
    assert left == [True]
    assert pair.ends[0].completed() == [1]


@ALL
def test_who_has_left_takes_nothing_new_and_says_nothing(transport):
    pair = joined(transport)
    pair.write(SHORT)
    pair.run_until_told()
    pair.net.run(within=20 * T, must=False)
    assert pair.ends[1].endpoint.close_qp(pair.ends[1].qpn)
    before = bytes(pair.ends[1].ram.bytes)
    answered = packets_of(pair.net, 1, lambda packet: packet[0] not in (0xD8, 0xD9))
    pair.write(LONG, at=500, immediate=1)
    pair.net.run(within=T, must=False)
    if transport != "mrc":
        assert not answered
    pair.net.run(pair.ends[0].failures, within=TO_THE_LAST)
    assert pair.ends[0].failures() == ["retries exceeded"]
    assert pair.ends[0].completed() == [1]
    assert pair.ends[1].ram.bytes == before
    assert pair.ends[1].delivered() == []
    assert pair.net.counters(1)["refused_qp_state"] > 5
    kinds = {packet[0] for packet in answered}
    assert kinds <= {0xD1}, "what is whole is said to who probes, and nothing else"


@ALL
def test_who_leaves_in_the_middle_of_sending_sends_no_more(transport):
    pair = joined(transport, port_rate_bps=2_000_000)
    sent = packets_of(pair.net, 0)
    for _ in range(5):
        pair.write(LONG)
    pair.net.run(lambda: len(sent) > 10, within=20 * T)
    pair.ends[0].endpoint.close_qp(pair.ends[0].qpn)
    count = len(sent)
    pair.net.run(within=200 * T, must=False)
    assert len(sent) == count
    assert pair.ends[0].failures() == pair.ends[0].completed() == []
    assert not pair.net.hosts[0].stalled(pair.net.now)
    assert not pair.net.hosts[0]._context.events


@ALL
def test_both_leave_at_once(transport):
    pair = joined(transport, port_rate_bps=2_000_000)
    for end, other in zip(pair.ends, reversed(pair.ends), strict=True):
        end.post(LONG, other.ram.address)
    pair.net.run(within=2 * T, must=False)
    for end in pair.ends:
        end.endpoint.close_qp(end.qpn)
    sent = [packets_of(pair.net, host) for host in (0, 1)]
    pair.net.run(within=500 * T, must=False)
    assert sent == [[], []]
    for end in pair.ends:
        end.endpoint.destroy_qp(end.qpn)
        assert not end.endpoint._qps
        assert end.endpoint.qp_packets() == {}


@ALL
def test_after_the_linger_it_is_unknown(transport):
    pair = joined(transport)
    pair.write(SHORT)
    pair.run_until_told()
    pair.ends[1].endpoint.close_qp(pair.ends[1].qpn)
    pair.ends[1].endpoint.destroy_qp(pair.ends[1].qpn)
    pair.write(SHORT)
    pair.net.run(pair.ends[0].failures, within=TO_THE_LAST)
    assert pair.ends[0].failures() == ["retries exceeded"]
    assert pair.net.counters(1)["refused_unknown_qp"] > 5
    assert pair.ends[1].ram.bytes[len(SHORT) :] == bytes(len(pair.ends[1].ram.bytes) - len(SHORT))


# --- failed and destroyed, at each state ---


def in_state(transport, state):
    """A pair whose end 0 is there."""
    pair = Pair(network(transport, port_rate_bps=2_000_000))
    end, other = pair.ends
    other.receive_from(end)
    other.send()
    end.receive_from(other)
    if state != "RTR":
        end.send()
    for number in range(10):
        other.post(LONG, end.ram.address, immediate=number)
        if state != "RTR":
            pair.write(LONG, immediate=number)
    pair.net.run(within=2 * T, must=False)
    if state == "ERROR":
        end.endpoint.fail_qp(end.qpn, QpFailure.BY_PROGRAM)
    elif state == "CLOSING":
        assert end.endpoint.close_qp(end.qpn)
    assert end.endpoint._qps[end.qpn].state.value == state
    return pair


@ALL
@pytest.mark.parametrize("state", ["RTR", "RTS", "ERROR", "CLOSING"])
def test_destroyed_at_any_time(transport, state):
    pair = in_state(transport, state)
    end, other = pair.ends
    end.endpoint.destroy_qp(end.qpn)
    told = len(pair.net.events[0])
    placed = bytes(end.ram.bytes)
    sent = packets_of(pair.net, 0)
    pair.net.run(other.failures, within=TO_THE_LAST)
    assert other.failures() == ["retries exceeded"]
    assert len(pair.net.events[0]) == told
    assert end.ram.bytes == placed
    assert not sent
    for step in (end.endpoint.destroy_qp, end.endpoint.close_qp):
        with pytest.raises(UnknownQpError):
            step(end.qpn)


@ALL
@pytest.mark.parametrize("state", ["RTR", "RTS", "ERROR"])
def test_closed_at_any_time(transport, state):
    pair = in_state(transport, state)
    end = pair.ends[0]
    assert end.endpoint.close_qp(end.qpn) is (state != "ERROR")
    assert (end.qpn in end.endpoint._qps) is (state != "ERROR")
    told = len(pair.net.events[0])
    pair.net.run(within=300 * T, must=False)
    assert len(pair.net.events[0]) == told


@ALL
@pytest.mark.parametrize("state", ["RTR", "RTS"])
def test_put_in_error_by_its_program(transport, state):
    pair = in_state(transport, state)
    end, other = pair.ends
    end.endpoint.fail_qp(end.qpn, QpFailure.BY_PROGRAM)
    sent = packets_of(pair.net, 0)
    placed = bytes(end.ram.bytes)
    pair.net.run(other.failures, within=TO_THE_LAST)
    assert end.failures() == ["its program put it in ERROR"]
    assert other.failures() == ["retries exceeded"]
    assert not sent
    assert end.ram.bytes == placed
    with pytest.raises(QpStateError):
        end.endpoint.fail_qp(end.qpn, QpFailure.BY_PROGRAM)
    with pytest.raises(QpStateError):
        end.post(SHORT, other.ram.address)
    assert end.failures() == ["its program put it in ERROR"]


@ALL
def test_events_that_nobody_heard_go_with_the_qp(transport):
    pair = joined(transport)
    endpoint, qpn = pair.ends[0].endpoint, pair.ends[0].qpn
    endpoint.fail_qp(qpn, QpFailure.BY_PROGRAM)
    endpoint.close_qp(qpn)
    pair.net.run(within=T, must=False)
    assert pair.net.events_of(QpError, 0) == []


def test_a_port_that_falls_does_not_wake_who_has_left():
    pair = joined("mrc", port_rate_bps=2_000_000)
    for _ in range(5):
        pair.write(LONG)
    pair.net.run(within=2 * T, must=False)
    pair.ends[0].endpoint.close_qp(pair.ends[0].qpn)
    sent = packets_of(pair.net, 0)
    for plane in range(4):
        pair.net.port_down(0, plane)
        pair.net.run(within=T, must=False)
    assert pair.ends[0].failures() == [], "nobody is there to hear of it"
    pair.net.port_up(0, 2)
    pair.net.run(within=50 * T, must=False)
    assert not sent
    assert not pair.net.hosts[0].stalled(pair.net.now)


def test_the_last_port_ends_a_qp_in_rtr_too():
    pair = Pair(network("mrc"))
    pair.ends[1].receive_from(pair.ends[0])
    for plane in range(4):
        pair.net.port_down(1, plane)
    pair.net.run(within=T, must=False)
    assert pair.ends[1].failures() == ["all ports down"]
    late = Pair(pair.net)
    late.ends[1].receive_from(late.ends[0])
    pair.net.run(within=T, must=False)
    assert late.ends[1].failures() == ["all ports down"], "and one that is opened after it"


@ALL
def test_many_qps_that_come_and_go(transport):
    random, net = Random(4), network(transport, seed=4)
    net.worsen(loss=0.03)
    for _ in range(40):
        pair = Pair(net).join()
        for number in range(3):
            pair.write(SHORT, at=number * len(SHORT), immediate=number)
        net.run(within=random.randrange(0, 6 * T), must=False)
        for end in random.sample(pair.ends, 2):
            if random.random() < 0.5:
                end.endpoint.close_qp(end.qpn)
            else:
                end.endpoint.destroy_qp(end.qpn)
    net.run(within=50 * T, must=False)
    for host in (0, 1):
        for qpn in list(net.hosts[host]._qps):
            net.hosts[host].destroy_qp(qpn)
    sent = packets_of(net, 0, is_data)
    net.run(within=20 * T, must=False)
    assert not sent
    assert not [event for host in (0, 1) for event in net.events_of(QpError, host)]
    if transport == "mrc":
        assert not net.hosts[0]._peers[1].senders
    if transport == "selective":
        assert net.hosts[0]._context.in_flight == 0
