"""The wire format, against bytes written out by hand from the layouts of the specification (hosts/mrc/wire.py)."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire

u8, u16, u24, u32, u64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 24, 32, 64))


def emitted(emit, *arguments):
    """What an emit function writes, with the buffer behind it shown to be untouched."""
    buffer = memoryview(bytearray(b"\xee" * 5000))
    size = emit(buffer, *arguments)
    assert all(byte == 0xEE for byte in buffer[size:])
    return bytes(buffer[:size])


data_opcodes = st.sampled_from([*range(bth.WRITE_FIRST, wire.LAST_DATA_OPCODE + 1)])


def unstamped(packet):
    """A data packet without its TSETH."""
    return packet[:8] + bytes([packet[8] & ~0x10]) + packet[9:16] + packet[20:]


def hexbytes(text):
    return bytes.fromhex(text.replace("|", " "))


GOLDEN_DATA_ONLY_IMM = hexbytes(
    "cb 30 ffff 00 000123 b0 abcdef"  # BTH: ONLY_IMM, 3 pad bytes; A, RTX, TS
    "| 0102 0304"  # METH: RQMSN, MSN
    "| 1234 8001"  # TSETH: timestamp, tsr 1, ftype 1
    "| 1122334455667788 99aabbcc 00000005"  # RETH
    "| deadbeef"  # ImmDt
    "| 6162636465 000000"  # payload and padding
    "| 00000000"  # ICRC
)
GOLDEN_SACK = hexbytes(
    "dc 00 ffff 00 000123 20 000041"  # BTH: RTX of the trigger, cack PSN
    "| 0022"  # m = SKIP_ONCE, pr
    "| fffe"  # trigger is 2 below cack
    "| 0302c000"  # EV
    "| 4567 0123"  # spdcid, dpdcid
    "| 05 000041"  # ports down, cack
    "| 00 08"  # NSCC, mpr
    "| 0001"  # sack offset
    "| 8000000000000006"  # bitmap
    "| 1234 0003"  # echo, out of order
    "| 00 00abcd"  # penalty, received bytes / 256
    "| 00000000"
)
GOLDEN_NACK = hexbytes("dd 00 ffff 00 000123 00 000041 | 0000 02 00 0302c000 4567 0123 00 000041 20 00 1234 | 00000000")
GOLDEN_PROBE = hexbytes("de 00 ffff 00 000123 00 000000 | 000000 00 0007 0000 4567 0123 1234 8001 | 00000000")
GOLDEN_REQUEST = hexbytes("d8 00 ffff 00 000002 00 00beef | 00 01 00 00 0000000f 00000000 1234 8001 | 00000000")
GOLDEN_RESPONSE = hexbytes(
    "d9 00 ffff 00 000002 00 00beef | 00 04 0000 0302c000 0000000f 01 000000000000000000000000000000"
    "1234 000000000000 | 00000000"
)
GOLDEN_ACK = hexbytes("d1 00 ffff 00 000123 00 000041 | 1f 000009 | 00000000")
GOLDEN_UNSTAMPED = hexbytes(
    "cb 30 ffff 00 000123 a0 abcdef | 0102 0304 | 1122334455667788 99aabbcc 00000005 | deadbeef | 6162636465 000000"
    "| 00000000"
)
GOLDEN = {
    "data": GOLDEN_DATA_ONLY_IMM,
    "data without time stamp": GOLDEN_UNSTAMPED,
    "sack": GOLDEN_SACK,
    "nack": GOLDEN_NACK,
    "probe": GOLDEN_PROBE,
    "request": GOLDEN_REQUEST,
    "response": GOLDEN_RESPONSE,
    "ack": GOLDEN_ACK,
}


def test_golden_data():
    bits = bth.ACK_REQUEST | wire.RETRANSMISSION | wire.TIMESTAMP | 0xABCDEF
    assert emitted(
        wire.emit_data, bth.WRITE_ONLY_IMM, 0x123, bits, 0x102, 0x304, 0x1234, 0x1122334455667788, 0x99AABBCC, 5,
        memoryview(b"abcde"), 0xDEADBEEF,
    ) == GOLDEN_DATA_ONLY_IMM  # fmt: skip


def test_golden_sack():
    flags = wire.SACK_CE_SEEN | wire.SACK_PROBE_ANSWER
    assert emitted(
        wire.emit_sack, 0x123, wire.RETRANSMISSION | 0x41, flags, -2, 0x0302C000, 0x4567, 5, 8, 1,
        0x8000000000000006, 0x1234, 3, 0xABCD,
    ) == GOLDEN_SACK  # fmt: skip


def test_golden_control_packets():
    assert emitted(wire.emit_nack, 0x123, 0x41, wire.NACK_TRIMMED_LASTHOP, 0x0302C000, 0x4567, 0x1234) == GOLDEN_NACK
    assert emitted(wire.emit_probe, 0x123, 7, 0x4567, 0x1234) == GOLDEN_PROBE
    assert emitted(wire.emit_request, wire.OP_EV_PROBE, 0xBEEF, 0xF, 0x1234) == GOLDEN_REQUEST
    assert emitted(wire.emit_response, wire.OP_EV_PROBE, 0xBEEF, 0x0302C000, 0xF, 1, 0x1234) == GOLDEN_RESPONSE
    assert emitted(wire.emit_ack, 0x123, 0x41, bth.AETH_ACK, 9) == GOLDEN_ACK


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packets_are_accepted(name):
    assert wire.check(memoryview(GOLDEN[name]), False) is None


@given(data_opcodes, u24, u16, u64, u32, u32, st.binary(max_size=300), u32)
def test_data_without_a_time_stamp_differs_in_nothing_else(opcode, psn, msn, address, rkey, length, payload, immediate):
    carried = immediate if opcode in bth.HAS_IMMEDIATE else None
    fields = (opcode, 0x123, psn | wire.TIMESTAMP, 7, msn, 99, address, rkey, length)
    stamped = emitted(wire.emit_data, *fields, memoryview(payload), carried)
    packet = memoryview(unstamped(stamped))
    assert wire.check(packet, False) is None
    assert not wire.is_stamped(packet)
    op, pad, *rest = wire.read_data(packet)
    assert (op, rest) == (opcode, [psn, 7, msn, 0, address, rkey, length])
    assert wire.parse_data(packet)[:9] == (opcode, pad, bth.PKEY, 0x123, psn, 7, msn, 0, 0)
    start, end = wire.payload_bounds(len(packet), op, pad, psn)
    assert packet[start:end] == payload
    if carried is not None:
        assert wire.parse_immediate(packet) == immediate


def test_the_opcodes_are_those_of_the_specification():
    opcodes = (
        bth.WRITE_FIRST, bth.WRITE_MIDDLE, bth.WRITE_LAST, bth.WRITE_LAST_IMM, bth.WRITE_ONLY,
        bth.WRITE_ONLY_IMM, wire.TRANSPORT_ACK, wire.ENDPOINT_REQUEST, wire.ENDPOINT_RESPONSE, wire.SACK, wire.NACK,
        wire.PROBE_REQUEST,
    )  # fmt: skip
    assert bytes(opcodes) == hexbytes("c6 c7 c8 c9 ca cb d1 d8 d9 dc dd de")


@given(data_opcodes, u24, u24, st.booleans(), u16, u16, u16, u64, u32, u32, st.binary(max_size=300), u32)
def test_data_round_trip(opcode, qpn, psn, rtx, rqmsn, msn, stamp, address, rkey, length, payload, immediate):
    bits = psn | wire.TIMESTAMP | (wire.RETRANSMISSION if rtx else 0)
    carried = immediate if opcode in bth.HAS_IMMEDIATE else None
    fields = (opcode, qpn, bits, rqmsn, msn, stamp, address, rkey, length)
    packet = memoryview(emitted(wire.emit_data, *fields, memoryview(payload), carried))
    assert wire.check(packet, False) is None
    op, pad, pkey, *rest = wire.parse_data(packet)
    assert (op, pkey, rest) == (opcode, bth.PKEY, [*fields[1:6], wire.TS_FIELD, *fields[6:]])
    assert wire.is_stamped(packet)
    assert wire.read_data(packet) == (opcode, pad, bits, rqmsn, msn, stamp, address, rkey, length)
    start, end = wire.payload_bounds(len(packet), op, pad, bits)
    assert packet[start:end] == payload
    assert wire.destination_qpn(packet) == qpn
    if carried is not None:
        assert wire.parse_immediate(packet) == immediate


@given(
    u24, u24, st.sampled_from([0, wire.SACK_CE_SEEN, wire.SACK_PROBE_ANSWER]), st.integers(-32768, 32767), u32, u16,
    u8, u8, st.integers(-32768, 32767), u64, u16, st.integers(0, 0x7FFF), u24,
)  # fmt: skip
def test_sack_round_trip(qpn, psn, flags, offset, entropy, source, ports, mpr, sack_offset, bitmap, stamp, ooo, units):
    packet = memoryview(
        emitted(
            wire.emit_sack, qpn, psn, flags, offset, entropy, source, ports, mpr, sack_offset, bitmap, stamp, ooo, units
        )
    )
    assert wire.check(packet, False) is None
    sack = wire.parse_sack(packet)
    assert (sack.opcode, sack.qpn, sack.bits_psn, sack.flags) == (wire.SACK, qpn, psn, flags)
    assert (sack.offset_or_probe, sack.entropy) == (offset & 0xFFFF, entropy)
    assert (sack.source_cid, sack.destination_cid) == (source, qpn & 0xFFFF)
    assert (sack.ports_cack, sack.cc_type, sack.mpr) == (ports << 24 | psn, 0, mpr)
    assert (sack.sack_offset, sack.bitmap, sack.timestamp) == (sack_offset, bitmap, stamp)
    assert (sack.out_of_order, sack.penalty_received) == (ooo, units)
    used = (psn, flags, offset & 0xFFFF, entropy, ports, mpr, sack_offset, bitmap, stamp, ooo, units)
    assert wire.read_sack(packet) == used


@given(u24, u24, u8, u32, u16, u16)
def test_control_round_trips(qpn, psn, code, entropy, small, stamp):
    def through(emit, parse, *arguments):
        packet = memoryview(emitted(emit, *arguments))
        assert wire.check(packet, False) is None
        return parse(packet)

    assert through(wire.emit_nack, wire.parse_nack, qpn, psn, code, entropy, small, stamp) == (
        qpn, psn, code, entropy, stamp,
    )  # fmt: skip
    assert through(wire.emit_probe, wire.parse_probe, qpn, small, 0, stamp) == (qpn, small, stamp)
    assert through(wire.emit_request, wire.parse_request, 1, small, entropy, stamp) == (1, small, entropy, stamp, 1)
    assert through(wire.emit_response, wire.parse_response, 1, small, entropy, psn, code & 1, stamp) == (
        1, small, entropy, psn, code & 1, stamp,
    )  # fmt: skip
    assert through(wire.emit_ack, wire.parse_ack, qpn, psn, code, psn) == (qpn, psn, code, psn)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_truncation_is_refused(name):
    whole = bytearray(GOLDEN[name])
    bth.seal(memoryview(whole), len(whole))
    for size in range(len(whole)):
        assert wire.check(memoryview(whole)[:size], True) is not None
        least = {"data": 40 + 4 + 3, "data without time stamp": 36 + 4 + 3}.get(name)
        header_whole = least is not None and size >= least and size % 4 == 0
        if not header_whole:
            # Without a CRC nothing tells that payload is missing; the headers must be there all the same.
            assert wire.check(memoryview(whole)[:size], False) is not None


def changed(packet, at, value):
    return memoryview(packet[:at] + bytes([value]) + packet[at + 1 :])


def test_each_refusal_has_its_reason():
    assert wire.check(memoryview(b""), False) is bth.Refusal.TOO_SHORT
    assert wire.check(changed(GOLDEN_ACK, 0, 0x04), False) is bth.Refusal.UNKNOWN_OPCODE
    assert wire.check(changed(GOLDEN_ACK, 1, 0x01), False) is bth.Refusal.BAD_VERSION
    assert wire.check(memoryview(GOLDEN_ACK + b"\0"), False) is bth.Refusal.BAD_LENGTH
    assert wire.check(changed(GOLDEN_DATA_ONLY_IMM, 19, 0x02), False) is bth.Refusal.BAD_TIMESTAMP
    assert wire.check(memoryview(GOLDEN_ACK), True) is bth.Refusal.BAD_ICRC


@given(st.binary(max_size=120), st.sampled_from([*GOLDEN, None]), st.booleans())
def test_garbage_never_raises(tail, name, with_icrc):
    head = GOLDEN[name][: 40 - len(tail) // 4] if name else b""
    view = memoryview(head + tail)
    parsers = {
        wire.SACK: wire.parse_sack,
        wire.NACK: wire.parse_nack,
        wire.PROBE_REQUEST: wire.parse_probe,
        wire.ENDPOINT_REQUEST: wire.parse_request,
        wire.ENDPOINT_RESPONSE: wire.parse_response,
        wire.TRANSPORT_ACK: wire.parse_ack,
    }
    if wire.check(view, with_icrc) is None:
        parsers.get(view[0], wire.parse_data)(view)
        if view[0] <= wire.LAST_DATA_OPCODE:
            bits = int.from_bytes(view[8:12], "big")
            start, end = wire.payload_bounds(len(view), view[0], view[1], bits)
            assert wire.data_header_bytes(view) <= start <= end <= len(view) - 4


@given(st.binary(min_size=1, max_size=100), st.integers(0, 139), st.integers(1, 255))
def test_the_icrc_finds_any_changed_byte(payload, at, flip):
    buffer = memoryview(bytearray(300))
    size = wire.emit_data(
        buffer, bth.WRITE_ONLY, 9, wire.TIMESTAMP | 5, 0, 1, 0, 0, 0, len(payload), memoryview(payload), None
    )
    bth.seal(buffer, size)
    assert wire.check(buffer[:size], True) is None
    assert crc32(buffer[: size - 4]) == int.from_bytes(buffer[size - 4 : size], "big")
    buffer[at % size] ^= flip
    assert wire.check(buffer[:size], True) is not None


def test_a_trimmed_packet_needs_what_a_nack_is_made_of():
    """RETH may be missing: 128 bytes from Ethernet on end at its seventh byte."""
    for kept in (36, 26, 20):
        view = memoryview(GOLDEN_DATA_ONLY_IMM[:kept])
        assert wire.check_trimmed(view) is None
        assert wire.read_trimmed(view) == wire.read_data(memoryview(GOLDEN_DATA_ONLY_IMM))[2:6:3]
    assert wire.check_trimmed(memoryview(GOLDEN_DATA_ONLY_IMM[:19])) is bth.Refusal.TOO_SHORT
    assert wire.check_trimmed(memoryview(GOLDEN_UNSTAMPED[:16])) is None
    assert wire.read_trimmed(memoryview(GOLDEN_UNSTAMPED[:16])) == (wire.parse_data(memoryview(GOLDEN_UNSTAMPED))[4], 0)
    assert wire.check_trimmed(memoryview(GOLDEN_UNSTAMPED[:15])) is bth.Refusal.TOO_SHORT
    assert wire.check_trimmed(memoryview(GOLDEN_SACK)) is bth.Refusal.UNKNOWN_OPCODE
