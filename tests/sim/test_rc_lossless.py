"""Recovery of networks that drop nothing and keep no order: no gap is a loss, and a timeout alone finds one."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.rc import wire
from tests.sim.rcnet import PACKET_NS, RcNet, stream
from tests.sim.simnet import ImmediateDelivered, T, pattern

SHORT_RTO_T, LONG_RTO_T = 100 / 13, 320 / 13


class Scattered(RcNet):
    """Each packet takes any of the uplinks, whose delays differ by `spread_ns` at most: nothing is lost, and much is
    overtaken."""

    def __init__(self, spread_ns, recovery="lossless", **config):
        super().__init__(uplinks=8, recovery=recovery, **config)
        self.draws = Random(5)
        for uplink in range(8):
            self.worsen(uplink=uplink, delay_ns=T // 2 + spread_ns * uplink // 8)

    def way_of(self, src, token):
        peer, plane, _ = super().way_of(src, token)
        return peer, plane, self.draws.randrange(8)


@settings(max_examples=20, deadline=None)
@given(spread=st.floats(0, 1), qps=st.integers(1, 3), size=st.integers(0, 30 * 4096), psn=st.integers(0, (1 << 24) - 1))
def test_disorder_alone_never_sends_a_packet_twice(spread, qps, size, psn):
    net = Scattered(int(spread * T))
    flows = [net.join(psn_a=psn) for _ in range(qps)]
    for flow in flows:
        flow.write(pattern(size), immediate=1)
        flow.write(pattern(size, 2), offset=size, immediate=2, wr_id=2)
    net.run(lambda: len(net.completed()) == 2 * qps)
    sender = net.counters()
    assert (sender["retransmitted"], sender["nacks_received"], sender["resend_timeouts"]) == (0, 0, 0)
    for flow in flows:
        assert bytes(flow.region()[: 2 * size]) == pattern(size) + pattern(size, 2)
        said = [event.immediate for event in net.events_of(ImmediateDelivered, 1) if event.qpn == flow.qpn[1]]
        assert said == [1, 2]
    assert sum(net.requester(flow).lost_packets for flow in flows) == 0
    assert net.hosts[0]._context.in_flight == 0


def test_where_it_sends_nothing_again_selective_recovery_does():
    again = {}
    for recovery in ("selective", "lossless"):
        net = Scattered(T // 4, recovery)
        stream(net, net.join(), 640)
        net.run(lambda net=net: len(net.completed()) == 10)
        again[recovery] = net.counters()["retransmitted"]
    assert again["lossless"] == 0
    assert again["selective"] > 64


def test_disorder_of_a_quarter_of_t_costs_a_quarter_of_the_window_at_most():
    net = Scattered(T // 4)
    stream(net, net.join(), 6_000)
    net.run(within=3 * T, must=False)
    before, packets = net.delivered(1), 2_000
    net.run(within=packets * PACKET_NS, must=False)
    # A round trip is up to T/4 + T/4 longer, and the window is that of T and a burst of T/5, and 16 packets.
    window = T + T // 5 + 16 * PACKET_NS
    assert (net.delivered(1) - before) / packets > 0.97 * window / (1.5 * T)


@pytest.mark.parametrize(("packets", "timeout_t"), [(2, SHORT_RTO_T), (40, LONG_RTO_T)])
def test_only_a_timeout_finds_a_loss_and_only_what_is_missing_is_sent_again(packets, timeout_t):
    """That of few packets under way, or of many; a later packet that came says which one is missing."""
    net = RcNet(recovery="lossless")
    flow = net.join(psn_a=0)
    sent, lost = [], []

    def lose_the_first(src, _, __, packet):
        if src == 0 and wire.WRITE_FIRST <= packet[0] <= wire.WRITE_ONLY_IMM:
            sent.append((net.now, wire.bits_and_psn(memoryview(packet)) & 0xFFFFFF))
            if len(sent) == 1:
                lost.append(net.now)
                return False
        return None

    net.taps.append(lose_the_first)
    flow.write(pattern(packets * 4096))
    if packets > 2:
        # What is under way all the time, so that the long timeout holds.
        for number in range(60):
            flow.write(pattern(4096), offset=number * 4096, wr_id=2 + number)
            net.run(within=T // 2, must=False)
    net.run(lambda: len(net.completed()) == (61 if packets > 2 else 1), within=60 * T)
    assert net.counters()["retransmitted"] == 1
    assert net.requester(flow).lost_packets == 1
    again = [when for when, psn in sent if psn == 0][1]
    assert again - lost[0] == pytest.approx(timeout_t * T, rel=0.15)


def test_its_acks_name_what_came_and_ask_for_nothing():
    net = RcNet(recovery="lossless")
    flow = net.join(psn_a=0)
    said = []
    net.taps.append(lambda src, _, __, packet: said.append(wire.parse_ack(packet)[1:]) if src == 1 else None)
    buffer, remote = memoryview(bytearray(200)), flow.attributes[1]
    for psn in (2, 1, 0):
        reth = remote.region_address + psn * 4, remote.rkey, 12
        opcode = (wire.WRITE_FIRST, wire.WRITE_MIDDLE, wire.WRITE_LAST)[psn]
        bits = psn | (1 << 31 if psn == 0 else 0)
        size = wire.emit_data(buffer, opcode, remote.qpn, bits, reth, memoryview(b"data"), None)
        net.hosts[1].handle_datagram(buffer[:size], 0, 0, 0, wire.CLASS_DATA, net.now, net.now)
        net._drain(1)
    nothing = (1 << 24) - 1
    assert said == [(nothing, wire.SYNDROME_ACK, 2), (nothing, wire.SYNDROME_ACK, 1), (2, wire.SYNDROME_ACK, 2)]
    assert bytes(flow.region()[:12]) == b"datadatadata"
    assert net.counters(1)["nacks_sent"] == 0


@pytest.mark.parametrize("named", [-1, 0, 20, 1 << 23])
def test_an_ack_that_names_what_is_not_under_way_changes_nothing(named):
    net = RcNet(recovery="lossless")
    flow = net.join(psn_a=0)
    flow.write(pattern(20 * 4096))
    net.run(within=T // 2, must=False)
    before = net.hosts[0]._context.in_flight
    net.requester(flow).on_ack((1 << 24) - 1, wire.SYNDROME_ACK, named & 0xFFFFFF, net.now, net.now)
    assert net.hosts[0]._context.in_flight == before == 20
    net.requester(flow).on_ack((1 << 24) - 1, wire.SYNDROME_ACK, 7, net.now, net.now)
    net.requester(flow).on_ack((1 << 24) - 1, wire.SYNDROME_ACK, 7, net.now, net.now)
    assert net.hosts[0]._context.in_flight == 19
