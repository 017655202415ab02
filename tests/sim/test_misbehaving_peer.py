"""A peer that breaks the rules costs no more than it must. Each story was a hole once."""

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.errors import PeerAttributeError, QpStateError
from mrc_testbed.hosts.common.qpstate import QpState
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import QpAttributes
from tests.sim.simnet import ImmediateDelivered, Net, QpError, T, pattern
from tests.sim.test_loss import is_data
from tests.sim.test_responder import give, nack, sacks, sent_by
from tests.sim.test_transfer import PACKET, transfer

COUNTER = slice(45, 48)
"""Received bytes / 256 in a SACK."""


def changed(packet, **fields):
    """A packet with other bytes at some places: `b45=b"..."`."""
    bad = bytearray(packet)
    for name, value in fields.items():
        at = int(name[1:])
        bad[at : at + len(value)] = value
    return bytes(bad)


# --- a byte counter far ahead ---


def forging(net, ahead_units):
    """The first SACK in order after 10 data packets has a counter that is `ahead_units` ahead, once."""
    seen = {"forged": 0}

    def tap(src, token, traffic_class, packet):
        if src != 1 or packet[0] != wire.SACK or seen["forged"] or net.counters(1)["data_received"] < 10:
            return True
        seen["forged"] += 1
        units = int.from_bytes(packet[COUNTER], "big") + ahead_units & 0xFFFFFF
        bad = changed(packet, b45=units.to_bytes(3, "big"))
        net._carry(src, token, traffic_class, bad)
        return False

    net.taps.append(tap)
    return seen


@pytest.mark.parametrize("ahead_units", [1 << 12, 1 << 16, (1 << 23) - 1000])
def test_a_counter_far_ahead_does_not_silence_loss_inference(ahead_units):
    net = Net(seed=5)
    flow = net.join()
    seen = forging(net, ahead_units)
    net.worsen(src=0, loss=0.01)
    for i in range(3):
        transfer(net, flow, pattern(400 * PACKET), wr_id=i, within=200 * T)
    assert seen["forged"] == 1
    assert net.counters()["retransmitted"] > 3
    assert net.counters()["timeouts"] == 0
    assert net.counters()["refused_counts_unsent"] == 1


def test_a_counter_far_ahead_does_not_silence_port_masks():
    net = Net(seed=5)
    flow = net.join()
    forging(net, 1 << 22)
    net.taps.append(lambda src, token, tc, packet: packet[0] != wire.ENDPOINT_REQUEST)
    transfer(net, flow, pattern(100 * PACKET))
    net.hosts[1].port_down(2, net.now)
    transfer(net, flow, pattern(100 * PACKET), wr_id=2)
    before = net.plane_packets()[2]
    transfer(net, flow, pattern(100 * PACKET), wr_id=3)
    assert net.plane_packets()[2] == before


def test_the_counter_of_a_long_transfer_is_believed_across_its_wrap():
    net = Net(seed=5)
    flow = net.join()
    transfer(net, flow, pattern(100 * PACKET))
    near = (1 << 32) - 50 * PACKET
    net.hosts[1]._qps[flow.qpn[1]].receiver._received_bytes = near
    net.hosts[0]._qps[flow.qpn[0]].sender._order._latest = near >> 8
    net.worsen(src=0, loss=0.01)
    transfer(net, flow, pattern(400 * PACKET), wr_id=2, within=100 * T)
    assert net.counters()["refused_counts_unsent"] == 0
    assert net.counters()["timeouts"] == 0


# --- NACKs for ever ---


@pytest.mark.parametrize("reason", [wire.NACK_NO_RESOURCE, wire.NACK_TRIMMED_LASTHOP])
def test_a_peer_that_only_ever_refuses_fails_the_qp(reason):
    net = Net()
    flow = net.join()

    def refusing(src, token, traffic_class, packet):
        if src != 0 or not is_data(packet):
            return src == 0 or packet[0] == wire.NACK
        _, plane, uplink = token
        no = nack(net, flow, packet, reason, (plane << 8 | uplink) << 16 | 0xC000)
        net._carry(1, (0, plane, uplink), bth.CLASS_CONTROL, no)
        return False

    net.taps.append(refusing)
    flow.write(pattern(3 * PACKET))
    net.run(lambda: net.events_of(QpError), within=600 * T)
    assert net.events_of(QpError)[0].reason.value == "retries exceeded"
    assert net.counters()["nacks_received"] > 100
    assert net.counters()["timeouts"] == 0, "each was sent again when its NACK came, and no timer was waited for"


def test_refusals_that_end_fail_nothing():
    """Every packet is refused ten times, and none for good."""
    net = Net()
    flow = net.join()
    refusals = {}

    def refusing(src, token, traffic_class, packet):
        if src != 0 or not is_data(packet):
            return True
        psn = packet[9:12]
        refusals[psn] = refusals.get(psn, 0) + 1
        if refusals[psn] > 10:
            return True
        _, plane, uplink = token
        no = nack(net, flow, packet, wire.NACK_NO_RESOURCE, (plane << 8 | uplink) << 16 | 0xC000)
        net._carry(1, (0, plane, uplink), bth.CLASS_CONTROL, no)
        return False

    net.taps.append(refusing)
    transfer(net, flow, pattern(60 * PACKET), within=400 * T)


# --- requests that break the rules ---


def invalid(net, flow, packet):
    """Give host 1 one packet; returns whether it was refused as an invalid request, and by what counter."""
    answers = give(net, packet)
    naks = [wire.parse_ack(memoryview(p)) for _, _, p in answers if p[0] == wire.TRANSPORT_ACK]
    return [syndrome for _, _, syndrome, _ in naks]


def test_a_payload_longer_than_its_dma_length_is_not_placed():
    net = Net()
    flow = net.join()
    packet = sent_by(net, flow, (PACKET, None))[0]
    short = changed(packet, b32=(100).to_bytes(4, "big"))
    assert invalid(net, flow, short) == [bth.AETH_NAK_INVALID_REQUEST]
    assert not any(flow.region())
    assert net.counters(1)["refused_longer_than_length"] == 1


def test_a_second_immediate_of_the_same_number_does_not_replace_the_first():
    net = Net()
    flow = net.join()
    _, first, second = sent_by(net, flow, (PACKET, None), (PACKET, 11), (PACKET, 12))
    assert invalid(net, flow, first) == []
    assert invalid(net, flow, changed(second, b12=first[12:14])) == [bth.AETH_NAK_INVALID_REQUEST]
    assert net.counters(1)["refused_rqmsn_twice"] == 1
    assert not net.events_of(ImmediateDelivered, 1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"b28": bytes(4)}, "the peer's request was outside of the region"),
        ({"b32": bytes(4)}, "the peer's request was invalid"),
    ],
)
def test_a_responder_that_sent_a_fatal_nak_is_in_error_and_says_so(changes, reason):
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, None))
    give(net, packets[0])
    give(net, changed(packets[1], **changes))
    (event,) = net.events_of(QpError, 1)
    assert (event.qpn, event.peer, event.reason.value) == (flow.qpn[1], 0, reason)
    assert net.counters(1)["qp_errors"] == 1
    assert net.hosts[1]._qps[flow.qpn[1]].state is QpState.ERROR
    assert give(net, packets[2]) == [], "it takes and says nothing more"
    with pytest.raises(QpStateError):
        flow.write(b"x", source=1)
    net.run(within=T, must=False)
    assert net.counters(1)["sacks_sent"] == 0, "not even of what came before"


def test_both_ends_of_a_bad_request_fail():
    net = Net()
    flow = net.join()
    flow.write(pattern(PACKET), offset=1 << 22)
    net.run(lambda: net.events_of(QpError, 0) and net.events_of(QpError, 1), within=3 * T)
    assert net.events_of(QpError, 0)[0].reason.value == "remote access error"


# --- attributes ---


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mtu", 0), ("mtu", -4096), ("mtu", "4096"), ("mpr", 0), ("mpr", 256), ("mpr", 8.0), ("max_wimm", 0),
        ("max_wimm", 1 << 15), ("psn", 1 << 24), ("psn", -1), ("qpn", 1 << 24), ("qpn", -1), ("rkey", 1 << 32),
        ("addr", -1), ("addr", 1 << 64), ("len", -1), ("port_mask", -1),
        ("dynamic_mpr", 1), ("trim_nack", None), ("mpr", True), ("tsr_unit_ns", "8"),
    ],
)  # fmt: skip
def test_attributes_that_cannot_be_are_refused(field, value):
    told = Net().hosts[1].open_qp(0, 4096).as_json()
    where = told["regions"][0] if field in told["regions"][0] else told
    where[field] = value
    name = {"addr": "region_address", "len": "region_bytes"}.get(field, field)
    with pytest.raises(PeerAttributeError, match=rf"attribute {name} must be .*, not "):
        QpAttributes.from_json(told)


# --- control packets without bound ---


def test_one_probe_gets_few_sacks_however_much_is_out_of_order():
    net = Net(pace=False, payload_bytes=64)
    flow = net.join()
    packets = sent_by(net, flow, (1024 * 64, None))
    for packet in packets[1::2]:
        give(net, packet)
    assert len(packets) > 900
    buffer = memoryview(bytearray(100))
    size = wire.emit_probe(buffer, flow.attributes[1].qpn, 7, flow.attributes[0].qpn, 0)
    told = sacks(give(net, bytes(buffer[:size])))
    assert len(told) == 4
    assert [sack[13] for sack in told] == [1, 65, 129, 193], "oldest gap first"


def test_the_control_queue_has_a_bound():
    net = Net(pace=False, payload_bytes=64)
    flow = net.join()
    packet = sent_by(net, flow, (64, None))[0]
    for _ in range(10_000):
        net.hosts[1].handle_datagram(memoryview(packet), 0, 0x0102, 0xC000, wire.CLASS_TRIMMABLE, net.now, net.now)
    answers = give(net, packet)
    assert 1000 < len(answers) < 1200
    assert net.counters(1)["control_dropped"] == 10_000 + 2 - len(answers)
    assert len(give(net, packet)) == 1, "and it goes on"


def test_a_nack_that_found_no_room_was_not_sent():
    net = Net()
    flow = net.join()
    trimmed = sent_by(net, flow, (2 * PACKET, None))[0][:36]
    traffic_class = wire.DSCP_TRIMMED << 2
    for _ in range(10_000):
        net.hosts[1].handle_datagram(memoryview(trimmed), 0, 0x0102, 0xC000, traffic_class, net.now, net.now)
    answers = give(net, trimmed, traffic_class=traffic_class)
    assert net.counters(1)["nacks_sent"] == sum(each[2][0] == wire.NACK for each in answers) > 1000


def test_a_transport_ack_that_found_no_room_is_sent_later():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (3 * PACKET, None), (3 * PACKET, None))
    buffer = memoryview(bytearray(100))
    size = wire.emit_request(buffer, wire.OP_EV_PROBE, 1, 0xF, 0)
    for _ in range(5000):
        net.hosts[1].handle_datagram(buffer[:size], 0, 0x0102, 0xC000, bth.CLASS_CONTROL, net.now, net.now)
    for packet in packets[:3]:
        net.hosts[1].handle_datagram(memoryview(packet), 0, 0x0102, 0xC000, wire.CLASS_TRIMMABLE, net.now, net.now)
    net._drain(1)
    answers = [packet for packet in packets[3:] for _, _, packet in give(net, packet)]
    assert any(packet[0] == wire.TRANSPORT_ACK for packet in answers)


def test_a_warm_up_of_many_paths_finds_room():
    net = Net(hosts=4, planes=8, uplinks=32)
    for peer in (1, 2, 3):
        net.hosts[0].probe_paths(peer, net.now)
    net.run(within=3 * T, must=False)
    assert net.counters()["control_dropped"] == 0
    assert net.counters()["probes_answered"] == 3 * 8 * 32
