"""One endpoint fed with chosen packets in a chosen order."""

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from tests.sim.simnet import ImmediateDelivered, Net, T, pattern

PACKET = 4096


def sent_by(net, flow, *writes, host=0):
    """The packets of some writes, taken before they reach the network."""
    packets = []
    net.taps.append(lambda src, token, tc, packet: packets.append(packet) or False)
    for i, (size, immediate) in enumerate(writes):
        flow.write(pattern(size, i), offset=i * 20 * PACKET, wr_id=i, immediate=immediate)
    net.run(within=T, must=False)
    net.taps.clear()
    return [packet for packet in packets if packet[0] <= wire.LAST_DATA_OPCODE]


def give(net, packet, host=1, label=0x0102, traffic_class=wire.CLASS_TRIMMABLE):
    """Hand one packet to a host; returns its answers."""
    answers = []
    net.taps.append(lambda src, token, tc, packet: answers.append((token, tc, packet)) or False)
    net.hosts[host].handle_datagram(memoryview(packet), 1 - host, label, 0xC000, traffic_class, net.now, net.now)
    net._drain(host)
    net.taps.clear()
    return answers


def sacks(answers):
    return [wire.parse_sack(memoryview(packet)) for _, _, packet in answers if packet[0] == wire.SACK]


def test_packets_in_reverse_deliver_the_immediates_at_the_end_in_order():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (3 * PACKET, None), (PACKET, 11), (2 * PACKET, 12))
    for packet in packets[:0:-1]:
        give(net, packet)
        assert not net.events_of(ImmediateDelivered, 1)
    give(net, packets[0])
    assert [(e.immediate, e.msn) for e in net.events_of(ImmediateDelivered, 1)] == [(11, 2), (12, 3)]


def test_a_finished_message_does_not_let_a_later_immediate_pass_an_unfinished_one():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (PACKET, None), (3 * PACKET, None), (PACKET, 11))
    for i in (4, 0, 1, 3):
        give(net, packets[i])
        assert not net.events_of(ImmediateDelivered, 1)
    give(net, packets[2])
    assert len(net.events_of(ImmediateDelivered, 1)) == 1


def test_an_out_of_order_duplicate_is_sacked_at_once_and_not_counted_again():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (10 * PACKET, None))
    assert not sacks(give(net, packets[5]))
    flow.region()[5 * PACKET] ^= 0xFF
    (sack,) = sacks(give(net, packets[5]))
    assert net.counters(1)["data_received"] == 1
    assert net.counters(1)["duplicates"] == 1
    assert net.counters(1)["bytes_delivered"] == PACKET
    assert net.counters(0)["bytes_sent"] == 10 * PACKET
    assert flow.region()[5 * PACKET] ^ 0xFF == pattern(10 * PACKET, 0)[5 * PACKET], "it was not placed again"
    assert sack.bitmap == 1 << 5
    assert sack.penalty_received & 0xFFFFFF == PACKET // 256


def test_a_sack_comes_with_every_fourth_packet_on_the_path_of_the_fourth():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (10 * PACKET, None))
    answers = [give(net, packet, label=0x0100 | i % 4) for i, packet in enumerate(packets[:9])]
    assert [len(sacks(a)) for a in answers] == [0, 0, 0, 1, 0, 0, 0, 1, 0]
    (token, traffic_class, _) = answers[3][0]
    assert token == (0, 1, 3)
    assert traffic_class == 46 << 2
    sack = sacks(answers[7])[0]
    assert sack.entropy == 0x0103C000
    assert sack.offset_or_probe == 0
    assert sack.ports_cack == flow.attributes[0].psn + 7 & bth.PSN_MASK


def test_the_last_packet_of_a_burst_asks_for_a_sack_and_gets_it():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, None))
    assert [bool(packet[8] & 0x80) for packet in packets] == [False] * 5 + [True]
    assert len(sacks(give(net, packets[5]))) == 1


def test_ce_is_echoed_at_once():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, None))
    (sack,) = sacks(give(net, packets[0], traffic_class=4 << 2 | bth.ECN_CE))
    assert sack.flags == wire.SACK_CE_SEEN


def test_a_lonely_packet_is_sacked_after_a_quarter_of_t():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, None))
    given_at = net.now
    give(net, packets[0])
    answers = []
    net.taps.append(lambda src, token, tc, packet: packet[0] == wire.SACK and answers.append((net.now, packet)))
    net.run(lambda: answers, within=T)
    assert net.now - given_at == T // 4
    sack = wire.parse_sack(memoryview(answers[0][1]))
    sent = int.from_bytes(packets[0][16:18], "big")
    assert sack.timestamp == (sent + (T // 4 >> 13)) & 0xFFFF, "the time it was held back is taken off the round trip"


def test_a_transport_ack_comes_every_64_packets_and_at_the_end_of_a_message():
    net = Net(pace=False)
    flow = net.join()
    packets = sent_by(net, flow, (70 * PACKET, None))
    acked_after = []
    for i, packet in enumerate(packets):
        if any(answer[0] == wire.TRANSPORT_ACK for _, _, answer in give(net, packet)):
            acked_after.append(i)
    assert acked_after == [63, 69]


def test_a_packet_beyond_the_psn_range_is_refused_with_a_nack():
    net = Net(mpr=1)
    flow = net.join()
    packet = bytearray(sent_by(net, flow, (PACKET * 2, None))[0])
    packet[9:12] = ((flow.attributes[0].psn + 128) & bth.PSN_MASK).to_bytes(3, "big")
    ((_, _, answer),) = give(net, bytes(packet))
    _, bits, reason, entropy, _ = wire.parse_nack(memoryview(answer))
    assert reason == wire.NACK_PSN_OOR_WINDOW
    assert bits & bth.PSN_MASK == int.from_bytes(packet[9:12], "big")
    assert entropy == 0x0102C000
    assert not any(flow.region())


def nack(net, flow, packet, reason, entropy):
    """A NACK of that packet, as the responder would send it."""
    buffer = memoryview(bytearray(100))
    psn = int.from_bytes(packet[9:12], "big")
    size = wire.emit_nack(buffer, flow.attributes[0].qpn, psn, reason, entropy, flow.attributes[1].qpn, 0)
    return bytes(buffer[:size])


def test_a_nack_counts_only_for_the_attempt_it_names():
    net = Net()
    flow = net.join()
    where = []
    net.taps.append(lambda src, token, tc, packet: where.append(token))
    packets = sent_by(net, flow, (6 * PACKET, None))
    _, plane, uplink = where[2]
    other = (plane << 8 | (uplink + 1) % 4) << 16 | 0xC000
    give(net, nack(net, flow, packets[2], wire.NACK_NO_RESOURCE, other), host=0)
    assert net.counters()["refused_not_outstanding"] == 1
    right = (plane << 8 | uplink) << 16 | 0xC000
    again = give(net, nack(net, flow, packets[2], wire.NACK_NO_RESOURCE, right), host=0)
    assert [packet[9:12] for _, _, packet in again] == [packets[2][9:12]]
    assert net.counters()["retransmitted_no_resource"] == 1
    assert net.counters()["evs_retired"] == 0


def test_a_retransmission_avoids_the_ev_it_was_refused_on():
    net = Net(planes=1, uplinks=2, pace=False)
    flow = net.join()
    where = []
    net.taps.append(lambda src, token, tc, packet: where.append(token))
    packets = sent_by(net, flow, (9 * PACKET, None))
    for packet, (_, _, uplink) in list(zip(packets, where, strict=True)):
        again = give(net, nack(net, flow, packet, wire.NACK_TRIMMED, uplink << 16 | 0xC000), host=0)
        assert [token for token, _, _ in again] == [(1, 0, 1 - uplink)]


def test_a_nack_nobody_defined_is_counted_and_a_fatal_one_ends_the_qp():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, None))
    give(net, nack(net, flow, packets[0], 0x77, 0), host=0)
    assert net.counters()["refused_unknown_reason"] == 1
    give(net, nack(net, flow, packets[0], wire.NACK_UNEXP_EVENT, 0), host=0)
    assert net.counters()["qp_errors"] == 1


def test_a_sack_for_packets_never_sent_is_refused():
    net = Net()
    flow = net.join()
    sent_by(net, flow, (6 * PACKET, None))
    buffer = memoryview(bytearray(100))
    psn = flow.attributes[0].psn + 600 & bth.PSN_MASK
    qpn = flow.attributes[0].qpn
    size = wire.emit_sack(buffer, qpn, psn, 0, 0, 0, flow.attributes[1].qpn, 0, 0, 1, 0, 0, 0, 9)
    give(net, bytes(buffer[:size]), host=0)
    size = wire.emit_ack(buffer, qpn, psn, bth.AETH_ACK, 1)
    give(net, bytes(buffer[:size]), host=0)
    assert net.counters()["refused_acks_unsent"] == 2
    assert not net.completed()


def test_an_echo_of_the_wrong_attempt_is_no_rtt_sample():
    net = Net()
    flow = net.join()
    sent_by(net, flow, (6 * PACKET, None))
    buffer = memoryview(bytearray(100))
    psn, qpn = flow.attributes[0].psn, flow.attributes[0].qpn
    for rtx, sampled in ((wire.RETRANSMISSION, False), (0, True)):
        size = wire.emit_sack(buffer, qpn, psn | rtx, 0, 0, 0, flow.attributes[1].qpn, 0, 0, 1, 0, 0, 0, 9)
        give(net, bytes(buffer[:size]), host=0)
        assert (net.hosts[0].path_report(1).rtt_ns is not None) is sampled


def test_only_the_latest_of_many_attempts_gives_an_rtt_sample():
    net = Net(planes=1, uplinks=3, pace=False)
    flow = net.join()
    where = []
    net.taps.append(lambda src, token, tc, packet: where.append(token))
    (packet,) = sent_by(net, flow, (PACKET, None))
    uplink, psn, qpn = where[0][2], int.from_bytes(packet[9:12], "big"), flow.attributes[0].qpn
    for _ in range(2):
        net.skip(T)
        refused = nack(net, flow, packet, wire.NACK_TRIMMED_LASTHOP, uplink << 16 | 0xC000)
        (((_, _, uplink), _, packet),) = give(net, refused, host=0)
    latest = int.from_bytes(packet[16:18], "big")
    buffer = memoryview(bytearray(100))
    net.skip(T + T // 2)
    for echo, rtt in ((latest - (T >> 13) & 0xFFFF, None), (latest, T + T // 2)):
        fields = (0, 1, uplink << 16 | 0xC000, flow.attributes[1].qpn, 0, 0, 1, 0, echo, 0, 9)
        size = wire.emit_sack(buffer, qpn, psn - 1 & bth.PSN_MASK | wire.RETRANSMISSION, *fields)
        give(net, bytes(buffer[:size]), host=0)
        found = net.hosts[0].path_report(1).rtt_ns
        assert found == rtt or abs(found - rtt) < 2 << 13


def test_a_reliability_probe_is_told_all_that_has_come():
    net = Net(pace=False)
    flow = net.join()
    packets = sent_by(net, flow, (88 * PACKET, None))
    assert len(packets) == 88, "a window, and more than a bitmap holds"
    held = {3, 20, 70}
    for n, packet in enumerate(packets):
        if n not in held:
            give(net, packet)
    buffer = memoryview(bytearray(100))
    size = wire.emit_probe(buffer, flow.attributes[1].qpn, 7, flow.attributes[0].qpn, 0)
    told = set()
    for sack in sacks(give(net, bytes(buffer[:size]))):
        assert (sack.flags, sack.offset_or_probe) == (wire.SACK_PROBE_ANSWER, 7)
        assert sack.bits_psn & bth.PSN_MASK == flow.attributes[0].psn + 2 & bth.PSN_MASK
        told |= {2 + sack.sack_offset + bit for bit in range(64) if sack.bitmap >> bit & 1}
    assert told == set(range(3, 88)) - held


def test_an_ev_probe_is_answered_on_the_path_it_came_by():
    net = Net()
    net.join()
    buffer = memoryview(bytearray(100))
    size = wire.emit_request(buffer, wire.OP_EV_PROBE, 77, 0xF, 0x1234)
    ((token, traffic_class, answer),) = give(
        net, bytes(buffer[:size]), label=0x0203, traffic_class=46 << 2 | bth.ECN_CE
    )
    assert token == (0, 2, 3)
    assert traffic_class == 46 << 2
    assert wire.parse_response(memoryview(answer)) == (1, 77, 0x0203C000, 0xF, 1, 0x1234)


def test_an_answer_to_no_probe_or_from_another_path_is_counted():
    net = Net()
    net.join()
    net.taps.append(lambda *_: False)
    net.hosts[0].probe_paths(1, net.now)
    net._drain(0)
    buffer = memoryview(bytearray(100))
    for request_id in (500, 0):
        size = wire.emit_response(buffer, wire.OP_EV_PROBE, request_id, 0x0F0FC000, 0, 0, 0)
        give(net, bytes(buffer[:size]), host=0)
    assert net.counters()["refused_unknown_probe"] == 2
    assert net.hosts[0].path_report(1).answered == []


def test_a_port_status_update_is_answered():
    net = Net()
    net.join()
    buffer = memoryview(bytearray(100))
    size = wire.emit_request(buffer, wire.OP_PORT_STATUS, 1, 0xF, 0)
    ((token, _, answer),) = give(net, bytes(buffer[:size]))
    assert token == (0, 1, 2)
    assert wire.parse_response(memoryview(answer)) == (0, 1, 0x0102C000, 0xF, 0, 0)


def test_an_operation_nobody_defined_is_counted():
    net = Net()
    net.join()
    buffer = memoryview(bytearray(100))
    size = wire.emit_request(buffer, 3, 1, 0xF, 0)
    assert give(net, bytes(buffer[:size])) == []
    assert net.counters(1)["refused_unknown_operation"] == 1


@pytest.mark.parametrize("own", [True, False])
def test_a_responder_asks_for_trimmed_packets_as_its_own_attribute_says(own):
    """Whatever its peer says, which speaks of the other direction."""
    net = Net(apart={0: {"trim_nack": not own}, 1: {"trim_nack": own}})
    flow = net.join()
    packet = sent_by(net, flow, (2 * PACKET, None))[0]
    assert len(give(net, packet[:36], traffic_class=wire.DSCP_TRIMMED << 2)) == own
    assert net.counters(1)["trimmed_received"] == 1


@pytest.mark.parametrize("kept", [20, 26, 35, 36, 154])
def test_a_switch_may_cut_within_reth_and_the_packet_is_asked_for(kept):
    """128 bytes from Ethernet on are 26 of the UDP payload, 256 are 154."""
    net = Net()
    flow = net.join()
    packet = sent_by(net, flow, (2 * PACKET, None))[0]
    (answer,) = give(net, packet[:kept], traffic_class=wire.DSCP_TRIMMED << 2)
    assert wire.parse_nack(memoryview(answer[2]))[1:3] == (flow.attributes[0].psn, wire.NACK_TRIMMED)
    assert wire.parse_nack(memoryview(answer[2]))[4] == int.from_bytes(packet[16:18], "big")


def test_what_is_cut_before_its_time_stamp_is_refused():
    net = Net()
    flow = net.join()
    packet = sent_by(net, flow, (2 * PACKET, None))[0]
    assert give(net, packet[:19], traffic_class=wire.DSCP_TRIMMED << 2) == []
    assert net.counters(1)["refused_too_short"] == 1


def test_garbage_is_counted_by_reason():
    net = Net()
    net.join()
    give(net, b"\xca" * 10)
    give(net, b"\x00" * 100)
    assert net.counters(1)["refused_too_short"] == 1
    assert net.counters(1)["refused_unknown_opcode"] == 1


def test_a_psn_too_old_to_be_a_duplicate_is_ignored():
    net = Net()
    flow = net.join()
    packet = bytearray(sent_by(net, flow, (PACKET * 2, None))[0])
    packet[9:12] = ((flow.attributes[0].psn - 65536) & bth.PSN_MASK).to_bytes(3, "big")
    assert give(net, bytes(packet)) == []
    assert net.counters(1)["refused_psn_window"] == 1


def test_a_sack_that_claims_too_much_ends_the_qp_instead_of_hanging_it():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, 5))
    buffer = memoryview(bytearray(100))
    psn, qpn = flow.attributes[0].psn - 1 & bth.PSN_MASK, flow.attributes[0].qpn
    stamp = int.from_bytes(packets[0][16:18], "big")
    size = wire.emit_sack(buffer, qpn, psn, 0, 1, 0, flow.attributes[1].qpn, 0, 0, 1, 0x3F, stamp, 0, 96)
    give(net, bytes(buffer[:size]), host=0)
    net.run(lambda: net.counters()["qp_errors"], within=800 * T)
    assert net.counters()["reliability_probes_answered"] > 5
    assert net.counters()["retransmitted"] == 0


def unstamped(packet):
    """A data packet without its TSETH, as a peer that takes no RTT sends it."""
    return packet[:8] + bytes([packet[8] & ~0x10]) + packet[9:16] + packet[20:]


def test_data_without_a_time_stamp_is_taken_and_no_delay_is_read_from_it():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, 5))
    answers = [give(net, unstamped(packet)) for packet in packets]
    assert flow.region()[: 6 * PACKET] == pattern(6 * PACKET, 0)
    assert [event.immediate for event in net.events_of(ImmediateDelivered, 1)] == [5]
    assert [sack[15] for answer in answers for sack in sacks(answer)] == [0, 0], "nothing to echo"
    assert net.hosts[1]._peers[0].one_way._smallest is None


def test_a_lonely_packet_without_a_time_stamp_is_sacked_with_no_echo():
    net = Net()
    flow = net.join()
    packets = sent_by(net, flow, (6 * PACKET, None))
    give(net, unstamped(packets[0]))
    answers = []
    net.taps.append(lambda src, token, tc, packet: packet[0] == wire.SACK and answers.append(packet))
    net.run(lambda: answers, within=T)
    assert wire.parse_sack(memoryview(answers[0]))[15] == 0


def test_a_trimmed_packet_without_a_time_stamp_is_asked_for():
    net = Net()
    flow = net.join()
    packet = unstamped(sent_by(net, flow, (2 * PACKET, None))[0])
    (answer,) = give(net, packet[:32], traffic_class=wire.DSCP_TRIMMED << 2)
    assert wire.parse_nack(memoryview(answer[2]))[1:3] == (flow.attributes[0].psn, wire.NACK_TRIMMED)


def test_a_transfer_without_time_stamps_arrives():
    net = Net(seed=4)
    flow = net.join()

    def strip(src, token, traffic_class, packet):
        if packet[0] > wire.LAST_DATA_OPCODE or not packet[8] & 0x10:
            return True
        net._carry(src, token, traffic_class, unstamped(packet))
        return False

    net.taps.append(strip)
    net.worsen(src=0, loss=0.02)
    flow.write(pattern(300 * PACKET))
    net.run(net.completed, within=100 * T)
    assert flow.region()[: 300 * PACKET] == pattern(300 * PACKET)
    assert net.counters()["qp_errors"] == 0
