"""Packets whose payload stays where its sender has it are the packets that carry all their bytes."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.testbed.switching.port_rules import PortRule
from tests.port_cases import CORE_LINK, LAST_LINK, PAYLOAD
from tests.unit.virtual.test_tap import LINKS, read, seen, tapped
from tests.unit.virtual.virtual_stage import Stage

TOKEN = 7
PORT = 0xC000
NOW_NS = 10**9
SIZES = (0, 1, 4095, PAYLOAD, PAYLOAD + 3)


def headers(number: int, opcode: int, payload: memoryview, lent: bool) -> bytes:
    """A data packet without CRC: its headers alone, or all of it."""
    buffer = memoryview(bytearray(len(payload) + wire.MAX_HEADER_BYTES))
    immediate = 0xA1B2C3D4 if opcode in bth.HAS_IMMEDIATE else None
    size = wire.emit_data(
        buffer, opcode, 1, wire.TIMESTAMP | number, 2, 3, 4, 5, 6, 7, payload, immediate, wire.TS_FIELD, lent
    )
    return bytes(buffer[: size - bth.bytes_after_headers(payload) if lent else size])


@pytest.mark.parametrize("opcode", [bth.WRITE_MIDDLE, bth.WRITE_LAST_IMM])
@pytest.mark.parametrize("size", SIZES)
def test_headers_and_payload_make_the_whole_packet(opcode: int, size: int) -> None:
    payload = memoryview(bytes(range(256)) * 17)[:size]
    assert bth.whole(headers(9, opcode, payload, True), payload) == headers(9, opcode, payload, False)


@pytest.mark.parametrize("lent", [False, True])
def test_ports_treat_both_alike(lent: bool) -> None:
    """Marks, trims, drops, corrupted bits and captured frames; what is asserted is the same for both."""
    stage = Stage()
    stage.fabric.set_rate(CORE_LINK, 1_000_000)
    stage.fabric.add_rule(LAST_LINK, "near", PortRule("corrupt"))
    taps = [tapped(stage, link) for link in (LINKS[0], LAST_LINK)]
    payload = memoryview(bytes([0x5A]) * PAYLOAD)
    destination = stage.to("h0", "h2")
    for number in range(30):
        data = headers(number, bth.WRITE_MIDDLE, payload, lent)
        stage.sent["h0"].append(True)
        stage.nics["h0"].send(data, destination, wire.CLASS_TRIMMABLE, payload if lent else None)
    stage.run()
    first, last = ([bytes(read(packet).payload) for packet in seen(tap)] for tap in taps)
    assert first == [headers(number, bth.WRITE_MIDDLE, payload, False) for number in range(30)]
    assert {len(data) for data in last} == {len(first[0]), wire.DATA_HEADER_BYTES}
    assert all(first[int.from_bytes(data[9:12], "big")].startswith(data) for data in last)
    got = {int.from_bytes(one.data[9:12], "big"): one.data for one in stage.got["h2"]}
    spoilt = [(first[number], data) for number, data in got.items() if len(data) > wire.DATA_HEADER_BYTES]
    assert spoilt
    assert all(sum((a ^ b).bit_count() for a, b in zip(*pair, strict=True)) == 1 for pair in spoilt)
    assert not stage.ledger().unexplained


def pair(icrc: bool = False) -> tuple[Endpoint, Endpoint, int, Any]:
    """Two connected endpoints, one that lends its payloads first; its QP, and the terms of the other's."""
    ends = []
    for host in (0, 1):
        config = EndpointConfig(
            host=host, planes=1, udp_port=PORT, rtt_ns=10**6, port_rate_bps=10**9, pace=False, icrc=icrc
        )
        end = Endpoint(config)
        end.add_peer(1 - host, [(0, 0, TOKEN)])
        ends.append(end)
    mine, theirs = (end.open_qp(1 - host, 4 * PAYLOAD) for host, end in enumerate(ends))
    ends[0].connect_qp(mine.qpn, theirs)
    ends[1].connect_qp(theirs.qpn, mine)
    ends[0].lend_payloads()
    return ends[0], ends[1], mine.qpn, theirs


def polled(end: Endpoint) -> tuple[bytes, memoryview | None]:
    """The next packet: all of it or its headers, and what it lends."""
    buffer = memoryview(bytearray(2 * PAYLOAD))
    packet = end.poll_transmit(NOW_NS, buffer)
    assert packet is not None
    lent = end.take_lent()
    assert end.take_lent() is None
    return bytes(buffer[: packet[0] - (0 if lent is None else bth.bytes_after_headers(lent))]), lent


def given(end: Endpoint, data: bytes, payload: memoryview) -> None:
    """Hand a lent packet to an endpoint."""
    end.handle_parts(data, payload, 0, 0, PORT, wire.CLASS_TRIMMABLE, NOW_NS, NOW_NS)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_lent_arrives_as_it_was_when_it_was_sent(size: int) -> None:
    sender, receiver, qpn, theirs = pair()
    source = bytearray(bytes(range(1, 252)) * 17)[:size]
    sent = bytes(source)
    sender.post_write(qpn, source, theirs.region_address, 1, immediate=5)
    for _ in range(max(1, -(-size // PAYLOAD))):
        data, lent = polled(sender)
        assert lent is not None
        source[:] = bytes(size)
        given(receiver, data, lent)
        source[:] = sent
    assert receiver.region(theirs.qpn)[:size] == sent
    assert receiver.counters()["bytes_delivered"] == size
    event = receiver.poll_event()
    assert (event.immediate, event.length) == (5, size)


def test_bytes_that_cannot_change_are_not_copied() -> None:
    sender, _, qpn, theirs = pair()
    source = bytes(PAYLOAD)
    sender.post_write(qpn, source, theirs.region_address, 1)
    _, lent = polled(sender)
    assert lent is not None
    assert lent.obj is source


def test_with_a_crc_all_is_written() -> None:
    sender, receiver, qpn, theirs = pair(icrc=True)
    sender.post_write(qpn, b"abc", theirs.region_address, 1)
    data, lent = polled(sender)
    assert lent is None
    receiver.handle_datagram(memoryview(data), 0, 0, 0, wire.CLASS_TRIMMABLE, NOW_NS, NOW_NS)
    assert receiver.region(theirs.qpn)[:3] == b"abc"


def test_lent_packets_of_strangers_are_refused() -> None:
    sender, receiver, qpn, theirs = pair()
    sender.post_write(qpn, b"abc", theirs.region_address, 1)
    data, lent = polled(sender)
    assert lent is not None
    receiver.handle_parts(data, lent, 9, 0, 0, wire.CLASS_TRIMMABLE, NOW_NS, NOW_NS)
    given(receiver, data[:5] + bytes(3) + data[8:], lent)
    counters = receiver.counters()
    assert (counters["refused_unknown_peer"], counters["refused_unknown_qp"]) == (1, 1)
    assert not any(receiver.region(theirs.qpn)[:3])
