"""The packets of MRC inside UDP: layout, check, emit, parse.

The layouts are those of the specification's section 7, as its readers give them. The content of reserved fields is ours
(docs/protocol.md, "On the wire").

Every datagram is `BTH 12 | extension headers | [payload, padded to 4] | ICRC 4`, all fields big-endian. Reading is two
steps: `check` looks at opcode, lengths and CRC and names a `Refusal`; after it the `parse_*` functions cannot fail and
return the raw fields of one precompiled Struct, in the order of the matching `emit_*` arguments. `read_data` and
`read_sack` serve the endpoint itself: they skip the words that it does not use.

The ICRC here is CRC-32 over the UDP payload before it. RoCEv2's also covers the parts of IP and UDP headers that do not
change on the way; ours does not, so a changed address, flow label or port goes unnoticed. Off, it is sent as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from mrc_testbed.hosts.common.bth import (
    BTH_BYTES,
    ECN_ECT0,
    ICRC_BYTES,
    IMMEDIATE_BYTES,
    PKEY,
    PSN_MASK,
    QPN_MASK,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_LAST_IMM,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
    Refusal,
    bytes_after_headers,
    close,
    has_icrc,
)

# --- opcodes, BTH byte 0 (6.2) ---
TRANSPORT_ACK = 0xD1
ENDPOINT_REQUEST = 0xD8
ENDPOINT_RESPONSE = 0xD9
SACK = 0xDC
NACK = 0xDD
PROBE_REQUEST = 0xDE

# --- sizes and offsets, from the start of the UDP payload ---
DATA_HEADER_BYTES = 36
"""BTH, METH (at 12), TSETH (at 16), RETH (at 20); ImmDt follows here, or the payload. A packet without TSETH (TS = 0)
has its RETH at 16, and all that follows 4 bytes earlier."""
TSETH_BYTES = 4
STAMPED_BYTES = 20
"""BTH, METH, TSETH: what a NACK is made of. A switch may cut all that follows."""
SACK_BYTES = 52
NACK_BYTES = 36
PROBE_BYTES = 32
REQUEST_BYTES = 32
RESPONSE_BYTES = 52
ACK_BYTES = 20
MAX_HEADER_BYTES = DATA_HEADER_BYTES + IMMEDIATE_BYTES + ICRC_BYTES + 3
"""What a data packet needs beside its payload, padding included."""

# --- bits ---
RETRANSMISSION = 1 << 29
"""RTX bit, in the word that PSN sits in (BTH bytes 8-11)."""
TIMESTAMP = 1 << 28
"""TS bit, same word: a TSETH follows the METH. So only data can have it; probes and requests carry their time stamp in
a field of their own header."""
ENDPOINT_QPN = 2
"""Destination QP of endpoint requests and responses."""
TS_FIELD = 0x8001
"""Second half of a TSETH: tsr = 1 (own unit), ftype = 1."""
TS_FIELD_SHORT = 0x0001
"""The same with tsr = 0: units of 128 ns."""
FTYPE_MASK = 0xF
SACK_CE_SEEN = 1 << 5
"""SETH m field = SKIP_ONCE."""
SACK_ALWAYS_SKIP = 2 << 5
SACK_MARK_MASK = 3 << 5
SACK_PROBE_ANSWER = 1 << 1
"""SETH pr bit."""
SACK_PORTS = 0xFF
"""Ports that a SACK has a bit for. Of the others Port Status Updates alone tell, which have 32."""
RESTORE_WINDOW = 1 << 7
"""restore_cwnd, in byte 32 of SETH and CC_STATE."""
PENALTY_MASK = 0x7F
"""rcv_cwnd_pen, same byte."""
OP_PORT_STATUS = 0
OP_EV_PROBE = 1
NACK_CC_TYPE = 2
"""cc_type of a NACK (bits 7-4 of NETH byte 16), as three independent implementations have it; its meaning is not
public. In a SACK it is 0, NSCC."""

# --- NACK reasons (3.9) ---
NACK_TRIMMED = 0x01
NACK_TRIMMED_LASTHOP = 0x02
NACK_NO_BITMAP = 0x06
NACK_NO_PKT_BUFFER = 0x07
NACK_NO_RESOURCE = 0x0A
NACK_PSN_OOR_WINDOW = 0x0B
NACK_UNEXP_EVENT = 0x19

# --- traffic classes: DSCP << 2 | ECN (5.3) ---
CLASS_TRIMMABLE: int = 4 << 2 | ECN_ECT0
"""Its type is written, as are the next ones', because mypyc infers none of a constant of another module."""
CLASS_TRIMMABLE_RETX: int = 8 << 2 | ECN_ECT0
CLASS_NO_TRIM: int = ECN_ECT0
"""Data that must not lose its payload: waits with the other data (DSCP 0)."""
DSCP_TRIMMED = 12
DSCP_TRIMMED_LASTHOP = 16

# --- layouts. Every one begins with the BTH: opcode, flags/pad/version, P_Key, QPN, bits and PSN ---
_DATA = Struct(">BBHII HHHHQII")
_IMMEDIATE = Struct(">I")
_SACK = Struct(">BBHII HHIHHIBBhQHHI I")
_NACK = Struct(">BBHII HBBIHHIBBH I")
_PROBE = Struct(">BBHII 4xHxxHHHH I")
_REQUEST = Struct(">BBHII xBxxIIHH I")
_RESPONSE = Struct(">BBHII xBxxIIB15xH6x I")
_ACK = Struct(">BBHII I I")
SOURCE_CID = 20
"""Where SACKs, NACKs and probes have the lower half of their sender's QPN."""
_DATA_USED = Struct(">BB6xI HHH2xQII")
_TRIMMED_USED = Struct(">8xI 4xH")
_UNSTAMPED_START = Struct(">BBHII HH")
_UNSTAMPED_RETH = Struct(">QII")
_SACK_USED = Struct(">8xI HHI4xB4xBhQHHI 4x")

DataFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
UsedDataFields = tuple[int, int, int, int, int, int, int, int, int]
UsedSackFields = tuple[int, int, int, int, int, int, int, int, int, int, int]

_pack_data, _unpack_data = _DATA.pack_into, _DATA.unpack_from
_pack_sack, _unpack_sack = _SACK.pack_into, _SACK.unpack_from


class SackFields(NamedTuple):
    """A SACK as it is on the wire, in the order of its bytes; nothing is taken apart."""

    opcode: int
    pad: int
    pkey: int
    qpn: int
    bits_psn: int
    flags: int
    offset_or_probe: int
    """Of the trigger from the cack PSN, or the id of the probe that is answered; unsigned."""
    entropy: int
    source_cid: int
    destination_cid: int
    ports_cack: int
    """Mask of down ports << 24 | cack PSN."""
    cc_type: int
    mpr: int
    sack_offset: int
    bitmap: int
    timestamp: int
    out_of_order: int
    penalty_received: int
    """Penalty << 24 | received units."""
    icrc: int


_FIXED_SIZE = {
    TRANSPORT_ACK: ACK_BYTES,
    ENDPOINT_REQUEST: REQUEST_BYTES,
    ENDPOINT_RESPONSE: RESPONSE_BYTES,
    SACK: SACK_BYTES,
    NACK: NACK_BYTES,
    PROBE_REQUEST: PROBE_BYTES,
}
_DATA_OVERHEAD = dict.fromkeys(
    (WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY), DATA_HEADER_BYTES + ICRC_BYTES
) | dict.fromkeys((WRITE_LAST_IMM, WRITE_ONLY_IMM), DATA_HEADER_BYTES + IMMEDIATE_BYTES + ICRC_BYTES)
_OVERHEAD = [_DATA_OVERHEAD.get(opcode, 0) for opcode in range(256)]
LAST_DATA_OPCODE = WRITE_ONLY_IMM
"""After `check`, opcode <= this means a data packet."""


def check(view: memoryview, with_icrc: bool) -> Refusal | None:
    """None when `view` is a whole packet of a known kind whose fields can be parsed, else why not."""
    size = len(view)
    if size < BTH_BYTES + ICRC_BYTES:
        return Refusal.TOO_SHORT
    overhead = _OVERHEAD[view[0]]
    pad_version = view[1]
    if pad_version & 0xF:
        return Refusal.BAD_VERSION
    if overhead:
        if not view[8] & 0x10:
            overhead -= TSETH_BYTES
        if size < overhead + (pad_version >> 4 & 3) or size & 3:
            return Refusal.BAD_LENGTH
        if view[19] & FTYPE_MASK != 1 and view[8] & 0x10:
            return Refusal.BAD_TIMESTAMP
    else:
        expected = _FIXED_SIZE.get(view[0])
        if expected is None:
            return Refusal.UNKNOWN_OPCODE
        if size != expected:
            return Refusal.BAD_LENGTH
    if with_icrc and not has_icrc(view):
        return Refusal.BAD_ICRC
    return None


def check_trimmed(view: memoryview) -> Refusal | None:
    """As `check` for a data packet cut by a switch anywhere behind what a NACK is made of: RETH may be missing, and
    ICRC is."""
    if len(view) < BTH_BYTES or len(view) < STAMPED_BYTES - (0 if is_stamped(view) else TSETH_BYTES):
        return Refusal.TOO_SHORT
    if not _OVERHEAD[view[0]]:
        return Refusal.UNKNOWN_OPCODE
    return None


def data_header_bytes(view: memoryview) -> int:
    """Size of the headers of a data packet, without ImmDt. Needs a whole BTH."""
    return DATA_HEADER_BYTES if is_stamped(view) else DATA_HEADER_BYTES - TSETH_BYTES


def emit_data(
    buffer: memoryview,
    opcode: int,
    qpn: int,
    bits_psn: int,
    rqmsn: int,
    msn: int,
    timestamp: int,
    address: int,
    rkey: int,
    length: int,
    payload: memoryview,
    immediate: int | None,
    ts_field: int = TS_FIELD,
    lent: bool = False,
) -> int:
    """Data packet with TSETH; returns its size. `bits_psn` is PSN with the flag bits, TIMESTAMP among them, and
    `length` the DMA length of the message. `lent`: write the headers alone."""
    pad = -len(payload) & 3
    _pack_data(buffer, 0, opcode, pad << 4, PKEY, qpn, bits_psn, rqmsn, msn, timestamp, ts_field, address, rkey, length)
    start = DATA_HEADER_BYTES
    if immediate is not None:
        _IMMEDIATE.pack_into(buffer, start, immediate)
        start += IMMEDIATE_BYTES
    return start + bytes_after_headers(payload) if lent else close(buffer, start, payload)


def parse_data(view: memoryview) -> DataFields:
    """(opcode, pad << 4, P_Key, QPN, bits and PSN, RQMSN, MSN, timestamp, TSETH bits, address, rkey, length).

    Without TSETH timestamp and TSETH bits are 0.
    """
    if is_stamped(view):
        return _unpack_data(view)
    opcode, pad, pkey, qpn, bits_psn, rqmsn, msn = _UNSTAMPED_START.unpack_from(view)
    return opcode, pad, pkey, qpn, bits_psn, rqmsn, msn, 0, 0, *_unstamped_reth(view)


def _unstamped_reth(view: memoryview) -> tuple[int, int, int]:
    return _UNSTAMPED_RETH.unpack_from(view, DATA_HEADER_BYTES - TSETH_BYTES - _UNSTAMPED_RETH.size)


_read_stamped: Callable[[memoryview], UsedDataFields] = _DATA_USED.unpack_from


def read_data(view: memoryview) -> UsedDataFields:
    """(opcode, pad << 4, bits and PSN, RQMSN, MSN, timestamp, address, rkey, length); without TSETH timestamp is 0."""
    # Also right for the bits of data without TSETH, which are no shorter with their ICRC or what follows them.
    fields = _read_stamped(view)
    return fields if fields[2] & TIMESTAMP else _read_unstamped(view)


def _read_unstamped(view: memoryview) -> UsedDataFields:
    opcode, pad, _, _, bits_psn, rqmsn, msn = _UNSTAMPED_START.unpack_from(view)
    return opcode, pad, bits_psn, rqmsn, msn, 0, *_unstamped_reth(view)


def read_trimmed(view: memoryview) -> tuple[int, int]:
    """(bits and PSN, timestamp) of a data packet cut by a switch; without TSETH timestamp is 0."""
    return _TRIMMED_USED.unpack_from(view) if is_stamped(view) else (_UNSTAMPED_START.unpack_from(view)[4], 0)


def is_stamped(view: memoryview) -> bool:
    """Does a packet with a whole BTH have a TSETH?"""
    return bool(view[8] & 0x10)


def destination_qpn(view: memoryview) -> int:
    """BTH destination QP of any packet."""
    return view[5] << 16 | view[6] << 8 | view[7]


def parse_immediate(view: memoryview) -> int:
    """ImmDt of a packet whose opcode has one."""
    value: int = _IMMEDIATE.unpack_from(view, data_header_bytes(view))[0]
    return value


def payload_bounds(size: int, opcode: int, pad_flags: int, bits_psn: int) -> tuple[int, int]:
    """Where the payload of a checked data packet of `size` bytes begins and ends."""
    start = _OVERHEAD[opcode] - (ICRC_BYTES if bits_psn & TIMESTAMP else ICRC_BYTES + TSETH_BYTES)
    return start, size - ICRC_BYTES - (pad_flags >> 4 & 3)


def emit_sack(
    buffer: memoryview,
    qpn: int,
    bits_psn: int,
    flags: int,
    offset_or_probe: int,
    entropy: int,
    source_qpn: int,
    port_mask: int,
    mpr: int,
    sack_offset: int,
    bitmap: int,
    timestamp: int,
    out_of_order: int,
    received_units: int,
) -> int:
    """SACK. `bits_psn`: cack PSN with the RTX bit of the trigger; `flags`: m and pr bits of SETH bytes 0-1."""
    _pack_sack(
        buffer,
        0,
        SACK,
        0,
        PKEY,
        qpn,
        bits_psn,
        flags,
        offset_or_probe & 0xFFFF,
        entropy,
        source_qpn & 0xFFFF,
        qpn & 0xFFFF,
        (port_mask & SACK_PORTS) << 24 | bits_psn & PSN_MASK,
        0,
        mpr,
        sack_offset,
        bitmap,
        timestamp,
        out_of_order,
        received_units,
        0,
    )
    return SACK_BYTES


def parse_sack(view: memoryview) -> SackFields:
    """All of its fields."""
    return SackFields(*_unpack_sack(view))


read_sack: Callable[[memoryview], UsedSackFields] = _SACK_USED.unpack_from
"""(bits and PSN, flags, offset or probe id (unsigned), entropy, mask of down ports, mpr, sack offset, bitmap,
timestamp, packets out of order, penalty << 24 | received units)."""


def emit_nack(
    buffer: memoryview, qpn: int, bits_psn: int, reason: int, entropy: int, source_qpn: int, timestamp: int
) -> int:
    """NACK of the PSN in `bits_psn` (with the RTX bit of the packet refused)."""
    psn = bits_psn & PSN_MASK
    _NACK.pack_into(
        buffer, 0, NACK, 0, PKEY, qpn, bits_psn, 0, reason, 0, entropy,
        source_qpn & 0xFFFF, qpn & 0xFFFF, psn, NACK_CC_TYPE << 4, 0, timestamp, 0,
    )  # fmt: skip
    return NACK_BYTES


def parse_nack(view: memoryview) -> tuple[int, int, int, int, int]:
    """(QPN, bits and PSN, reason, entropy, timestamp)."""
    f = _NACK.unpack_from(view)
    return f[3], f[4], f[6], f[8], f[14]


def emit_probe(
    buffer: memoryview, qpn: int, probe_id: int, source_qpn: int, timestamp: int, ts_field: int = TS_FIELD
) -> int:
    """Reliability probe to a QP: asks for a SACK, uses no PSN."""
    _PROBE.pack_into(
        buffer, 0, PROBE_REQUEST, 0, PKEY, qpn, 0, probe_id, source_qpn & 0xFFFF, qpn & 0xFFFF, timestamp,
        ts_field, 0,
    )  # fmt: skip
    return PROBE_BYTES


def parse_probe(view: memoryview) -> tuple[int, int, int]:
    """(QPN, probe id, timestamp)."""
    f = _PROBE.unpack_from(view)
    return f[3], f[5], f[8]


def emit_request(
    buffer: memoryview, operation: int, request_id: int, port_mask: int, timestamp: int, ts_field: int = TS_FIELD
) -> int:
    """Endpoint request: EV probe or port status update."""
    _REQUEST.pack_into(
        buffer, 0, ENDPOINT_REQUEST, 0, PKEY, ENDPOINT_QPN, request_id & 0xFFFF, operation, port_mask, 0,
        timestamp, ts_field, 0,
    )  # fmt: skip
    return REQUEST_BYTES


def parse_request(view: memoryview) -> tuple[int, int, int, int, int]:
    """(operation, request id, port mask, timestamp, tsr)."""
    f = _REQUEST.unpack_from(view)
    return f[5] & 3, f[4] & 0xFFFF, f[6], f[8], f[9] >> 15


def emit_response(
    buffer: memoryview, operation: int, request_id: int, entropy: int, port_mask: int, mark: int, timestamp: int
) -> int:
    """Answer to an endpoint request: `entropy` is the EV it came on, `mark` 1 when it carried CE."""
    _RESPONSE.pack_into(
        buffer, 0, ENDPOINT_RESPONSE, 0, PKEY, ENDPOINT_QPN, request_id & 0xFFFF, operation << 2, entropy, port_mask,
        mark, timestamp, 0,
    )  # fmt: skip
    return RESPONSE_BYTES


def parse_response(view: memoryview) -> tuple[int, int, int, int, int, int]:
    """(operation, request id, entropy, port mask, mark, timestamp)."""
    f = _RESPONSE.unpack_from(view)
    return f[5] >> 2 & 3, f[4] & 0xFFFF, f[6], f[7], f[8], f[9]


def emit_ack(buffer: memoryview, qpn: int, psn: int, syndrome: int, msn: int) -> int:
    """Transport ACK or NAK: `psn` is covered cumulatively, `msn` is that of the last completed message."""
    _ACK.pack_into(buffer, 0, TRANSPORT_ACK, 0, PKEY, qpn, psn & PSN_MASK, syndrome << 24 | msn & 0xFFFFFF, 0)
    return ACK_BYTES


def parse_ack(view: memoryview) -> tuple[int, int, int, int]:
    """(QPN, PSN, syndrome, MSN)."""
    f = _ACK.unpack_from(view)
    return f[3] & QPN_MASK, f[4] & PSN_MASK, f[5] >> 24, f[5] & 0xFFFFFF
