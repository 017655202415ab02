"""The packets of RoCEv2 as a reliable connection uses them: layout, check, emit, parse.

InfiniBand Architecture Specification 1.4, chapter 9, and its Annex A17 (RoCEv2). Every UDP payload is `BTH 12 | RETH 16
in FIRST and ONLY | ImmDt 4 | payload, padded to 4 | ICRC 4`, an acknowledgement `BTH | AETH 4 | ICRC`, a congestion
notification (CNP) `BTH | 16 bytes of 0 | ICRC`, and so are the probe of a plane and its answer, which are ours; all
fields are big-endian. With selective and with lossless recovery
every data packet has a RETH (IRN, section 5.2.1), because a packet must say for itself where it belongs.

As in `mrc_testbed.hosts.mrc.wire` reading is two steps, `check` and then what cannot fail, and the ICRC covers the UDP
payload alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from mrc_testbed.hosts.common.bth import (
    ACK_REQUEST,
    BTH_BYTES,
    ICRC_BYTES,
    IMMEDIATE_BYTES,
    PKEY,
    PSN_MASK,
    QPN_MASK,
    Refusal,
    close,
    has_icrc,
)

UDP_PORT = 4791
FRAME_BYTES = 14 + 40 + 8
"""Ethernet, IPv6, UDP: what the wire carries beside the UDP payload."""

# --- opcodes, BTH byte 0: three bits of the transport (0: reliable connection), five of the operation ---
WRITE_FIRST = 0x06
WRITE_MIDDLE = 0x07
WRITE_LAST = 0x08
WRITE_LAST_IMM = 0x09
WRITE_ONLY = 0x0A
WRITE_ONLY_IMM = 0x0B
READ_REQUEST = 0x0C
READ_RESPONSE = 0x10
"""READ of one packet: the only one that failover needs (hosts/rc/port_group.py)."""
ACKNOWLEDGE = 0x11
SEND_IMM = 0x25
"""SEND of nothing with an immediate, of an unreliable connection (transport 1): what failover asks a dead port with."""
CNP = 0x81
PLANE_PROBE = 0xE0
PLANE_ANSWER = 0xE1
"""Ours: InfiniBand leaves opcodes from 0xC0 on to manufacturers."""
OPERATION_MASK = 0x1F
"""MRC's opcodes name the same operations in a transport of their own (`mrc_testbed.hosts.mrc.wire`)."""
BEGINS_MESSAGE = frozenset({WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM})
ENDS_MESSAGE = frozenset({WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM})
HAS_IMMEDIATE = frozenset({WRITE_LAST_IMM, WRITE_ONLY_IMM})
ASIDE = frozenset({READ_REQUEST, READ_RESPONSE, SEND_IMM})
"""What failover says beside the data. It is taken in by QPs in any state."""

# --- syndromes, AETH byte 0 ---
SYNDROME_ACK = 0x1F
"""Acknowledged; no credits are counted."""
SYNDROME_NAK_SEQUENCE = 0x60
SYNDROME_KIND = 0x60
"""Bits of a syndrome that are 0 in an acknowledgement."""

CLASS_DATA = 26 << 2 | 2
"""Traffic class of data: DSCP 26, which RoCE NICs are commonly given, and ECT(0)."""
ACK_BYTES = 20
CNP_BYTES = 32
RETH_BYTES = 16
READ_REQUEST_BYTES = BTH_BYTES + RETH_BYTES + ICRC_BYTES
FLAGS_BYTES = 64
"""What one READ brings: the completion flags of a QP."""
READ_RESPONSE_BYTES = BTH_BYTES + 4 + FLAGS_BYTES + ICRC_BYTES
SEND_IMM_BYTES = BTH_BYTES + IMMEDIATE_BYTES + ICRC_BYTES
_BECN = 1 << 30
"""Bit of the word that QPN sits in: this is a congestion notification."""

_BTH = Struct(">BBHII")
_BTH_RETH = Struct(">BBHII QII")
_RETH = Struct(">QII")
_PSN = Struct(">I")
_WORD = Struct(">I")
_ACK = Struct(">BBHII I I")
_CNP = Struct(">BBHII 16x I")
_NOTHING = memoryview(b"")


def _overheads(reth: frozenset[int]) -> list[int]:
    """Bytes beside the payload, by opcode; 0 for what is no data. `reth`: the opcodes that have one."""
    table = [0] * 256
    for opcode in range(WRITE_FIRST, WRITE_ONLY_IMM + 1):
        table[opcode] = (
            BTH_BYTES
            + (RETH_BYTES if opcode in reth else 0)
            + (IMMEDIATE_BYTES if opcode in HAS_IMMEDIATE else 0)
            + ICRC_BYTES
        )
    return table


GO_BACK_N_OVERHEAD: Sequence[int] = _overheads(BEGINS_MESSAGE)
SELECTIVE_OVERHEAD: Sequence[int] = _overheads(frozenset(range(WRITE_FIRST, WRITE_ONLY_IMM + 1)))
_FIXED_SIZE = {
    ACKNOWLEDGE: ACK_BYTES,
    CNP: CNP_BYTES,
    PLANE_PROBE: CNP_BYTES,
    PLANE_ANSWER: CNP_BYTES,
    READ_REQUEST: READ_REQUEST_BYTES,
    READ_RESPONSE: READ_RESPONSE_BYTES,
    SEND_IMM: SEND_IMM_BYTES,
}


def check(view: memoryview, with_icrc: bool, overheads: Sequence[int]) -> Refusal | None:
    """None when `view` is a whole packet of a known kind whose fields can be parsed, else why not."""
    size = len(view)
    if size < BTH_BYTES + ICRC_BYTES:
        return Refusal.TOO_SHORT
    overhead, pad_version = overheads[view[0]], view[1]
    if pad_version & 0xF:
        return Refusal.BAD_VERSION
    if overhead:
        if size < overhead + (pad_version >> 4 & 3) or size & 3:
            return Refusal.BAD_LENGTH
    else:
        expected = _FIXED_SIZE.get(view[0])
        if expected is None:
            return Refusal.UNKNOWN_OPCODE
        if size != expected:
            return Refusal.BAD_LENGTH
    if with_icrc and not has_icrc(view):
        return Refusal.BAD_ICRC
    return None


def emit_data(
    buffer: memoryview,
    opcode: int,
    qpn: int,
    bits_psn: int,
    reth: tuple[int, int, int] | None,
    payload: memoryview,
    immediate: int | None,
) -> int:
    """Data packet; returns its size. `reth`: address, rkey, DMA length, None in a packet without one."""
    pad = -len(payload) & 3
    if reth is None:
        _BTH.pack_into(buffer, 0, opcode, pad << 4, PKEY, qpn, bits_psn)
        start = BTH_BYTES
    else:
        _BTH_RETH.pack_into(buffer, 0, opcode, pad << 4, PKEY, qpn, bits_psn, *reth)
        start = BTH_BYTES + RETH_BYTES
    if immediate is not None:
        _WORD.pack_into(buffer, start, immediate)
        start += IMMEDIATE_BYTES
    return close(buffer, start, payload)


def bits_and_psn(view: memoryview) -> int:
    """The last word of the BTH: flag bits and PSN."""
    word: int = _PSN.unpack_from(view, 8)[0]
    return word


def parse_reth(view: memoryview) -> tuple[int, int, int]:
    """(address, rkey, DMA length) of a packet that has a RETH."""
    return _RETH.unpack_from(view, BTH_BYTES)


def payload_bounds(view: memoryview, overheads: Sequence[int]) -> tuple[int, int]:
    """Where the payload of a checked data packet begins and ends."""
    return overheads[view[0]] - ICRC_BYTES, len(view) - ICRC_BYTES - (view[1] >> 4 & 3)


def parse_immediate(view: memoryview, overheads: Sequence[int]) -> int:
    """ImmDt of a packet whose opcode has one."""
    value: int = _WORD.unpack_from(view, overheads[view[0]] - ICRC_BYTES - IMMEDIATE_BYTES)[0]
    return value


def emit_ack(buffer: memoryview, qpn: int, psn: int, syndrome: int, msn: int) -> int:
    """ACK or NAK. `msn`: messages completed so far; in a NAK of selective recovery, and in an ACK of lossless recovery,
    the PSN of the packet that came."""
    _ACK.pack_into(buffer, 0, ACKNOWLEDGE, 0, PKEY, qpn, psn, syndrome << 24 | msn & 0xFFFFFF, 0)
    return ACK_BYTES


def parse_ack(view: memoryview) -> tuple[int, int, int, int]:
    """(QPN, PSN, syndrome, MSN)."""
    _, _, _, qpn, psn, word, _ = _ACK.unpack_from(view)
    return qpn & QPN_MASK, psn & 0xFFFFFF, word >> 24, word & 0xFFFFFF


def emit_cnp(buffer: memoryview, qpn: int) -> int:
    """Congestion notification packet: what `qpn` sends arrives with CE marks."""
    _CNP.pack_into(buffer, 0, CNP, 0, PKEY, _BECN | qpn, 0, 0)
    return CNP_BYTES


def emit_read(buffer: memoryview, qpn: int, psn: int, address: int, rkey: int) -> int:
    """Request of FLAGS_BYTES at `address`."""
    _BTH_RETH.pack_into(buffer, 0, READ_REQUEST, 0, PKEY, qpn, ACK_REQUEST | psn, address, rkey, FLAGS_BYTES)
    return close(buffer, BTH_BYTES + RETH_BYTES, _NOTHING)


def emit_flags(buffer: memoryview, qpn: int, psn: int, msn: int, flags: bytes) -> int:
    """Response to `emit_read`. `msn`: the first message that is not whole yet."""
    _ACK.pack_into(buffer, 0, READ_RESPONSE, 0, PKEY, qpn, psn, SYNDROME_ACK << 24 | msn & 0xFFFFFF, 0)
    return close(buffer, BTH_BYTES + 4, memoryview(flags))


def parse_flags(view: memoryview) -> tuple[int, int, bytes]:
    """(PSN, MSN, the flags) of a READ_RESPONSE."""
    _, psn, _, msn = parse_ack(view)
    return psn, msn, bytes(view[BTH_BYTES + 4 : BTH_BYTES + 4 + FLAGS_BYTES])


def emit_message(buffer: memoryview, qpn: int, psn: int, immediate: int) -> int:
    """SEND of nothing with an immediate."""
    _ACK.pack_into(buffer, 0, SEND_IMM, 0, PKEY, qpn, psn, immediate, 0)
    return SEND_IMM_BYTES


def parse_message(view: memoryview) -> tuple[int, int]:
    """(PSN, immediate) of a SEND_IMM."""
    immediate: int = _WORD.unpack_from(view, BTH_BYTES)[0]
    return bits_and_psn(view) & PSN_MASK, immediate


def emit_plane_packet(buffer: memoryview, opcode: int, qpn: int) -> int:
    """The probe of a plane, or its answer."""
    _CNP.pack_into(buffer, 0, opcode, 0, PKEY, qpn, 0, 0)
    return CNP_BYTES


def source_port(local_qpn: int, remote_qpn: int, plane: int = 0) -> int:
    """UDP source port of a QP: all that tells its packets from those of others between the same two ports of hosts.

    Linux makes it of the two QPNs (`rdma_calc_flow_label` and `rdma_flow_label_to_udp_sport`, include/rdma/ib_verbs.h).
    One that spreads over planes has a port for each, one after the other (ours).
    """
    product = local_qpn * remote_qpn
    product ^= product >> 20
    label = (product ^ product >> 40) & 0xFFFFF
    return 0xC000 | ((label & 0x3FFF) ^ label >> 14) + plane & 0x3FFF


def plane_of(port: int, local_qpn: int, remote_qpn: int) -> int:
    """The plane whose `source_port` this is; a large number if it is that of none."""
    return port - source_port(local_qpn, remote_qpn) & 0x3FFF
