"""Stories of packets that vanish."""

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from tests.sim.simnet import Net, QpError, T, pattern
from tests.sim.test_transfer import PACKET, transfer


def dropping(net, src, wanted):
    """Drop what `wanted(packet, n)` says; n counts the packets of that host, from 0."""
    seen = {"n": -1, "dropped": 0}

    def tap(host, token, traffic_class, packet):
        if host != src:
            return True
        seen["n"] += 1
        if wanted(packet, seen["n"]):
            seen["dropped"] += 1
            return False
        return True

    net.taps.append(tap)
    return seen


def is_data(packet):
    return packet[0] <= wire.LAST_DATA_OPCODE


def test_one_lost_packet_is_sent_once_more():
    net = Net()
    flow = net.join()
    dropping(net, 0, lambda packet, n: n == 37)
    transfer(net, flow, pattern(300 * PACKET))
    counters = net.counters()
    assert counters["retransmitted"] == 1
    assert (counters["bytes_sent"], net.counters(1)["bytes_delivered"]) == (301 * PACKET, 300 * PACKET)
    assert counters["evs_retired"] == 1
    assert counters["lost_overtaken"] + counters["lost_reordered"] == 1


def test_what_each_qp_lost_is_known_at_both_ends():
    net = Net()
    flow = net.join()
    dropping(net, 0, lambda packet, n: n in (37, 90))
    transfer(net, flow, pattern(300 * PACKET))
    sender, receiver = flow.attributes[0].qpn, flow.attributes[1].qpn
    assert net.hosts[0].lost_packets() == {sender: 2}
    assert net.hosts[0].qp_packets() == {sender: (300, 2)}
    assert net.hosts[1].lost_packets() == {}
    assert net.hosts[1].qp_packets() == {receiver: (0, 0)}


def test_a_later_packet_of_the_same_ev_proves_the_loss():
    net = Net(uplinks=1)
    flow = net.join()
    dropping(net, 0, lambda packet, n: n == 37)
    transfer(net, flow, pattern(300 * PACKET))
    assert net.counters()["lost_overtaken"] == 1
    assert net.counters()["retransmitted_overtaken"] == 1


def test_a_lost_tail_does_not_wait_for_the_timeout():
    net = Net()
    flow = net.join()
    first = flow.attributes[0].psn + 95 & bth.PSN_MASK
    lost = {(first + i & bth.PSN_MASK).to_bytes(3, "big") for i in range(5)}
    dropping(net, 0, lambda packet, n: is_data(packet) and not packet[8] & 0x20 and packet[9:12] in lost)
    taken = transfer(net, flow, pattern(100 * PACKET), within=12 * T)
    assert net.counters()["lost_probed"] >= 1
    assert net.counters()["lost_timeout"] == 0
    # 1.7 T to send, 2 T of silence, the probe's round trip, the retransmissions' round trip.
    assert taken < 7 * T


def test_a_single_lost_packet_that_is_the_whole_message():
    net = Net()
    flow = net.join()
    dropping(net, 0, lambda packet, n: n == 0)
    taken = transfer(net, flow, pattern(100), within=12 * T)
    assert taken < 6 * T


def test_a_sender_with_a_full_window_asks_as_soon_as_one_with_nothing_left():
    """Three times the window to send, and no answer to any of it: silence is not waited out as if more were to come."""
    net = Net()
    flow = net.join()
    asked, sent = [], []

    def tap(host, token, traffic_class, packet):
        if packet[0] == wire.PROBE_REQUEST:
            asked.append(net.now)
        elif is_data(packet):
            sent.append(net.now)
        return host == 0 or bool(asked)

    net.taps.append(tap)
    transfer(net, flow, pattern(270 * PACKET), within=20 * T)
    last = max(at for at in sent if at < asked[0])
    assert 2 * T <= asked[0] - last < 2.1 * T
    counters = net.counters()
    assert counters["timeouts"] == counters["evs_retired"] == counters["retransmitted"] == 0


def test_lost_sacks_cost_no_retransmission():
    net = Net()
    flow = net.join()
    seen = dropping(net, 1, lambda packet, n: packet[0] == wire.SACK and n % 2)
    transfer(net, flow, pattern(300 * PACKET))
    assert seen["dropped"] > 30
    assert net.counters()["retransmitted"] == 0


def test_the_last_sack_and_transport_ack_are_lost():
    net = Net()
    flow = net.join()
    seen: dict[str, int]
    seen = dropping(net, 1, lambda packet, n: net.counters(1)["data_received"] == 50 and seen["dropped"] < 2)
    taken = transfer(net, flow, pattern(50 * PACKET))
    assert net.counters()["reliability_probes_sent"] >= 1
    assert net.counters()["retransmitted"] == 0
    assert taken < 10 * T


def test_a_probe_that_still_waits_is_not_counted_as_sent():
    """A host that was told to be silent never sends it, and no switch sees it."""
    net = Net()
    flow = net.join()
    net.cut(src=1)
    flow.write(pattern(PACKET))
    net.run(within=T, must=False)
    endpoint = net.hosts[0]
    now = endpoint.next_timeout()
    while not endpoint._context.control:
        endpoint.handle_timeout(now)
        now = endpoint.next_timeout()
    assert net.counters()["suspect_probes_sent"] == 0
    polled = [endpoint.poll_transmit(now, net.buffer) for _ in range(2)]
    assert [packet[2] >> 2 for packet in polled] == [wire.CLASS_NO_TRIM >> 2, bth.CLASS_CONTROL >> 2]
    assert net.counters()["suspect_probes_sent"] == 1


@pytest.mark.parametrize("sent_at_t10", [(0,), (0, 38)])
def test_the_timer_never_comes_before_the_answer_to_a_probe(sent_at_t10):
    """What was heard or sent late puts the usual probe off, and so does one whose answer was lost."""
    net = Net()
    flow = net.join()
    begin = net.now
    net.cut(src=1)
    for number, at in enumerate(sent_at_t10):
        net.run(within=begin + at * T // 10 - net.now, must=False)
        flow.write(pattern(PACKET), wr_id=number)
    net.run(within=begin + 46 * T // 10 - net.now, must=False)
    net.heal(src=1)
    net.run(until=lambda: len(net.completed()) == len(sent_at_t10))
    counters = net.counters()
    assert counters["timeouts"] == counters["evs_retired"] == counters["retransmitted"] == 0


def test_a_loss_is_found_before_the_timer_when_something_was_heard_late():
    net = Net()
    flow = net.join()
    dropping(net, 0, lambda packet, n: n == 0)
    begin = net.now
    for number in range(3):
        flow.write(pattern(PACKET), wr_id=number)
        net.run(within=19 * T // 10, must=False)
    net.run(until=lambda: len(net.completed()) == 3)
    counters = net.counters()
    assert (counters["timeouts"], counters["lost_probed"]) == (0, 1)
    assert net.now - begin < 7.2 * T


def test_only_the_transport_ack_is_lost():
    net = Net()
    flow = net.join()
    seen: dict[str, int]
    seen = dropping(net, 1, lambda packet, n: packet[0] == wire.TRANSPORT_ACK and seen["dropped"] < 1)
    transfer(net, flow, pattern(20 * PACKET), within=10 * T)
    assert net.counters()["retransmitted"] == 0


def test_a_retransmission_that_is_lost_too():
    net = Net()
    flow = net.join()
    victims = {}

    def twice(packet, n):
        if not is_data(packet):
            return False
        psn = int.from_bytes(packet[9:12], "big")
        victims.setdefault("psn", psn + 40)
        if psn != victims["psn"] or victims.get("times", 0) == 3:
            return False
        victims["times"] = victims.get("times", 0) + 1
        return True

    dropping(net, 0, twice)
    transfer(net, flow, pattern(400 * PACKET))
    assert victims["times"] == 3
    assert net.counters()["retransmitted"] == 3
    assert net.counters()["evs_retired"] == 3


@pytest.mark.parametrize(("reinfer", "by_timer"), [(True, 0), (False, 1)])
def test_without_reinference_only_the_timer_finds_a_lost_retransmission(reinfer, by_timer):
    """P1's Fig. 16 at 1 %: the first loss is inferred either way."""
    timeout, psns = 20, []
    net = Net(reinfer=reinfer, timeout=timeout)
    flow = net.join()

    def twice(packet, n):
        if is_data(packet):
            psns.append(packet[9:12])
        return is_data(packet) and packet[9:12] == psns[0] and psns.count(psns[0]) <= 2

    dropping(net, 0, twice)
    taken = transfer(net, flow, pattern(400 * PACKET), within=100 * T)
    counters = net.counters()
    assert counters["retransmitted"] == 2
    assert counters["lost_timeout"] == by_timer
    assert (taken > 1024 << timeout) is bool(by_timer)
    assert taken < (1024 << timeout) * by_timer + 16 * T


def test_a_retransmission_takes_another_ev_class_and_bit():
    net = Net()
    flow = net.join()
    sent = {}

    def tap(host, token, traffic_class, packet):
        if host == 0 and is_data(packet):
            psn = int.from_bytes(packet[9:12], "big")
            sent.setdefault(psn, []).append((token, traffic_class, packet[8] & 0x20))

    net.taps.append(tap)
    dropping(net, 0, lambda packet, n: n in (30, 60, 61, 62, 90))
    transfer(net, flow, pattern(200 * PACKET))
    again = [tries for tries in sent.values() if len(tries) > 1]
    assert len(again) == 5
    for (token, traffic_class, rtx), *later in again:
        assert traffic_class == 4 << 2 | 2
        assert not rtx
        for other, other_class, other_rtx in later:
            assert other != token
            assert other_class == 8 << 2 | 2
            assert other_rtx


def test_one_percent_loss_everywhere():
    net = Net()
    net.worsen(loss=0.01)
    flow = net.join()
    transfer(net, flow, pattern(1000 * PACKET), within=120 * T)
    assert net.counters()["data_on_bad_ev"] == 0
    assert net.counters()["evs_retired"] >= 5
    # The first loss of a path is its last: nearly all losses are paid for once.
    assert net.counters()["retransmitted"] < 40


def test_ten_percent_loss_everywhere():
    net = Net()
    net.worsen(loss=0.1)
    flow = net.join()
    transfer(net, flow, pattern(200 * PACKET), within=400 * T)
    assert not net.events_of(QpError)
    assert net.counters()["data_on_bad_ev"] == 0


def test_a_burst_of_losses_longer_than_one_bitmap():
    net = Net(port_rate_bps=200_000_000)
    flow = net.join()
    dropping(net, 0, lambda packet, n: is_data(packet) and 100 <= n < 250)
    transfer(net, flow, pattern(600 * PACKET))
    assert net.counters()["data_on_bad_ev"] == 0
    assert net.counters()["retransmitted"] >= 150


def test_trimmed_packets_are_asked_for_and_blame_no_path():
    net = Net()
    flow = net.join()
    trimmed = []

    def trim(host, token, traffic_class, packet):
        if host == 0 and is_data(packet) and len(packet) > 4000 and traffic_class >> 2 == 4 and len(trimmed) < 12:
            trimmed.append(packet)
            label = token[1] << 8 | token[2]
            dscp = 12 if len(trimmed) % 2 else 16
            net.hosts[1].handle_datagram(memoryview(packet[:36]), 0, label, 0xC000, dscp << 2, net.now, net.now)
            return False
        return True

    net.taps.append(trim)
    transfer(net, flow, pattern(100 * PACKET), within=12 * T)
    counters = net.counters()
    assert counters["nacks_received"] == 12
    assert counters["retransmitted_trimmed"] == counters["retransmitted_trimmed_lasthop"] == 6
    assert counters["evs_retired"] == 0
