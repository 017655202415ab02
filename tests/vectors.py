"""One packet of every type, written by hand byte by byte from the layouts that the specification's readers give.

Each is given three times: as bytes, as the arguments with which `hosts/mrc/wire.py` must emit it, and as the header
fields that the scapy layers must find in it. Data without TSETH is only ever received. Digits are grouped by field and
`|` ends a header.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire

A, RTX, TS = bth.ACK_REQUEST, wire.RETRANSMISSION, wire.TIMESTAMP
Fields = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Vector:
    """`layers`: header name -> fields that are not 0 and not the same in every packet."""

    text: str
    emit: tuple[Callable[..., int], Any] | None
    layers: Fields

    @property
    def packet(self) -> bytes:
        """The bytes, trailer included."""
        return bytes.fromhex(self.text.replace("|", " "))


def data(text: str, emit: tuple[Any, ...] | None, payload: bytes, immediate: int | None, layers: Fields) -> Vector:
    tail: Fields = {"Data": {"data": payload, "padding": bytes(-len(payload) % 4)}}
    if immediate is not None:
        tail = {"ImmDt": {"immediate": immediate}} | tail
    by = None if emit is None else (wire.emit_data, (*emit, memoryview(payload), immediate))
    return Vector(text, by, layers | tail)


EV_3_2 = {"ev_version": 0, "ev_plane": 3, "ev_uplink": 2, "ev_port": 0xC000}
"""EV 0x0302c000: plane 3, uplink 2, UDP source port 0xC000."""

VECTORS = {
    "write first": data(
        "c6 00 ffff 00 000123 10 fffffe"  # BTH: TS, PSN
        "| 0102 0304 | 1234 8001"  # METH: RQMSN, MSN; TSETH: time, tsr and ftype
        "| 1122334455667788 99aabbcc 00002000"  # RETH: address, rkey, length of the operation
        "| 0011223344556677 | 00000000",
        (bth.WRITE_FIRST, 0x123, TS | 0xFFFFFE, 0x102, 0x304, 0x1234, 0x1122334455667788, 0x99AABBCC, 0x2000),
        bytes.fromhex("0011223344556677"),
        None,
        {
            "BTH": {"opcode": 0xC6, "dqpn": 0x123, "ts": 1, "psn": 0xFFFFFE},
            "METH": {"rqmsn": 0x102, "msn": 0x304},
            "TSETH": {"timestamp": 0x1234, "tsr": 1, "ftype": 1},
            "RETH": {"address": 0x1122334455667788, "rkey": 0x99AABBCC, "length": 0x2000},
        },
    ),
    "write middle, retransmitted": data(
        "c7 00 ffff 00 000123 30 ffffff"  # RTX, TS
        "| 0000 0007 | ffff 8001 | 0000001000000000 00000001 ffffffff | aaaaaaaa | 00000000",
        (bth.WRITE_MIDDLE, 0x123, RTX | TS | 0xFFFFFF, 0, 7, 0xFFFF, 0x1000000000, 1, 0xFFFFFFFF),
        b"\xaa" * 4,
        None,
        {
            "BTH": {"opcode": 0xC7, "dqpn": 0x123, "rtx": 1, "ts": 1, "psn": 0xFFFFFF},
            "METH": {"msn": 7},
            "TSETH": {"timestamp": 0xFFFF, "tsr": 1, "ftype": 1},
            "RETH": {"address": 0x1000000000, "rkey": 1, "length": 0xFFFFFFFF},
        },
    ),
    "write last, asking for an acknowledgement": data(
        "c8 20 ffff 00 ffffff 90 000000"  # 2 bytes of padding; A, TS
        "| 0000 0007 | 0001 8001 | 0000000000000001 00000002 00000003 | bbcc 0000 | 00000000",
        (bth.WRITE_LAST, 0xFFFFFF, A | TS, 0, 7, 1, 1, 2, 3),
        b"\xbb\xcc",
        None,
        {
            "BTH": {"opcode": 0xC8, "pad": 2, "dqpn": 0xFFFFFF, "ack_request": 1, "ts": 1},
            "METH": {"msn": 7},
            "TSETH": {"timestamp": 1, "tsr": 1, "ftype": 1},
            "RETH": {"address": 1, "rkey": 2, "length": 3},
        },
    ),
    "write last with immediate": data(
        "c9 10 ffff 00 000010 10 000005 | 0008 0009 | 0000 8001 | 0000000000000000 00000000 00000007"
        "| 01020304 | 61626300"  # immediate; payload and 1 byte of padding
        "| 00000000",
        (bth.WRITE_LAST_IMM, 0x10, TS | 5, 8, 9, 0, 0, 0, 7),
        b"abc",
        0x1020304,
        {
            "BTH": {"opcode": 0xC9, "pad": 1, "dqpn": 0x10, "ts": 1, "psn": 5},
            "METH": {"rqmsn": 8, "msn": 9},
            "TSETH": {"tsr": 1, "ftype": 1},
            "RETH": {"length": 7},
        },
    ),
    "write only": data(
        "ca 00 ffff 00 000010 10 000006 | 0000 000a | 0000 8001 | 0000000000000000 00000000 00000004"
        "| 61626364 | 00000000",
        (bth.WRITE_ONLY, 0x10, TS | 6, 0, 10, 0, 0, 0, 4),
        b"abcd",
        None,
        {
            "BTH": {"opcode": 0xCA, "dqpn": 0x10, "ts": 1, "psn": 6},
            "METH": {"msn": 10},
            "TSETH": {"tsr": 1, "ftype": 1},
            "RETH": {"length": 4},
        },
    ),
    "write only with immediate": data(
        "cb 30 ffff 00 000123 b0 abcdef"  # 3 bytes of padding; A, RTX, TS
        "| 0102 0304 | 1234 8001 | 1122334455667788 99aabbcc 00000005 | deadbeef | 6162636465 000000 | 00000000",
        (bth.WRITE_ONLY_IMM, 0x123, A | RTX | TS | 0xABCDEF, 0x102, 0x304, 0x1234, 0x1122334455667788, 0x99AABBCC, 5),
        b"abcde",
        0xDEADBEEF,
        {
            "BTH": {
                "opcode": 0xCB, "pad": 3, "dqpn": 0x123, "ack_request": 1, "rtx": 1, "ts": 1, "psn": 0xABCDEF,
            },
            "METH": {"rqmsn": 0x102, "msn": 0x304},
            "TSETH": {"timestamp": 0x1234, "tsr": 1, "ftype": 1},
            "RETH": {"address": 0x1122334455667788, "rkey": 0x99AABBCC, "length": 5},
        },
    ),
    "write only, without time stamp": data(
        "ca 00 ffff 00 000010 00 000007 | 0000 000b | 1122334455667788 99aabbcc 00000004"  # TS = 0: no TSETH
        "| 61626364 | 00000000",
        None,
        b"abcd",
        None,
        {
            "BTH": {"opcode": 0xCA, "dqpn": 0x10, "psn": 7},
            "METH": {"msn": 11},
            "RETH": {"address": 0x1122334455667788, "rkey": 0x99AABBCC, "length": 4},
        },
    ),
    "write last with immediate, without time stamp": data(
        "c9 10 ffff 00 000010 80 000008 | 0008 000c | 0000000000000001 00000002 00000007"  # A
        "| 01020304 | 61626300 | 00000000",
        None,
        b"abc",
        0x1020304,
        {
            "BTH": {"opcode": 0xC9, "pad": 1, "dqpn": 0x10, "ack_request": 1, "psn": 8},
            "METH": {"rqmsn": 8, "msn": 12},
            "RETH": {"address": 1, "rkey": 2, "length": 7},
        },
    ),
    "transport ack": Vector(
        "d1 00 ffff 00 000123 00 000041 | 1f 000009 | 00000000",
        (wire.emit_ack, (0x123, 0x41, bth.AETH_ACK, 9)),
        {"BTH": {"opcode": 0xD1, "dqpn": 0x123, "psn": 0x41}, "AETH": {"syndrome": 0x1F, "msn": 9}},
    ),
    "transport nak": Vector(
        "d1 00 ffff 00 000123 00 000041 | 62 00ffff | 00000000",  # remote access error
        (wire.emit_ack, (0x123, 0x41, bth.AETH_NAK_REMOTE_ACCESS, 0xFFFF)),
        {"BTH": {"opcode": 0xD1, "dqpn": 0x123, "psn": 0x41}, "AETH": {"syndrome": 0x62, "msn": 0xFFFF}},
    ),
    "port status update": Vector(
        "d8 00 ffff 00 000002 00 000007"  # BTH: QP 2; no TSETH follows; request id in the PSN
        "| 00 00 00 00 0000000d 00000000 0001 8001 | 00000000",  # ports 1, 3, 4 can be reached
        (wire.emit_request, (wire.OP_PORT_STATUS, 7, 0xD, 1)),
        {
            "BTH": {"opcode": 0xD8, "dqpn": 2, "psn": 7},
            "ERTH": {"port_mask": 0xD, "timestamp": 1, "tsr": 1, "ftype": 1},
        },
    ),
    "ev probe": Vector(
        "d8 00 ffff 00 000002 00 00beef | 00 01 00 00 0000000f 00000000 1234 8001 | 00000000",
        (wire.emit_request, (wire.OP_EV_PROBE, 0xBEEF, 0xF, 0x1234)),
        {
            "BTH": {"opcode": 0xD8, "dqpn": 2, "psn": 0xBEEF},
            "ERTH": {"op": 1, "port_mask": 0xF, "timestamp": 0x1234, "tsr": 1, "ftype": 1},
        },
    ),
    "endpoint response": Vector(
        "d9 00 ffff 00 000002 00 00beef"
        "| 00 04 0000 0302c000 0000000f"  # op in bits 3-2 of byte 1; EV of the request; ports
        "01 000000000000000000000000000000 1234 000000000000"  # CE seen; time echoed
        "| 00000000",
        (wire.emit_response, (wire.OP_EV_PROBE, 0xBEEF, 0x0302C000, 0xF, 1, 0x1234)),
        {
            "BTH": {"opcode": 0xD9, "dqpn": 2, "psn": 0xBEEF},
            "EETH": {"op": 1, **EV_3_2, "port_mask": 0xF, "m": 1, "timestamp": 0x1234},
        },
    ),
    "sack": Vector(
        "dc 00 ffff 00 000123 20 000041"  # BTH: RTX of the trigger, cack
        "| 0020 fffe 0302c000 4567 0123"  # m = SKIP_ONCE; trigger 2 below cack; EV; spdcid, dpdcid
        "05 000041 00 08 0001 8000000000000006"  # ports down, cack; NSCC, mpr; offset, bitmap
        "| 1234 0003 00 00abcd"  # time echoed, out of order; penalty, bytes / 256
        "| 00000000",
        (
            wire.emit_sack,
            (
                0x123, RTX | 0x41, wire.SACK_CE_SEEN, -2, 0x0302C000, 0x4567, 5, 8, 1, 0x8000000000000006, 0x1234, 3,
                0xABCD,
            ),
        ),
        {
            "BTH": {"opcode": 0xDC, "dqpn": 0x123, "rtx": 1, "psn": 0x41},
            "SETH": {
                "m": 1, "offset_or_probe": -2, **EV_3_2, "spdcid": 0x4567, "dpdcid": 0x123, "ports_down": 5,
                "cack": 0x41, "mpr": 8, "sack_offset": 1, "bitmap": 0x8000000000000006,
            },
            "CCState": {"timestamp": 0x1234, "out_of_order": 3, "received": 0xABCD},
        },
    ),
    "sack, answer to a probe": Vector(
        "dc 00 ffff 00 000123 00 ffffff"
        "| 0042 0007 00000000 4567 0123"  # m = ALWAYS_SKIP, pr; probe id
        "00 ffffff 00 00 ffc0 0000000000000001"  # bitmap begins 64 below cack
        "| ffff 7fff ff ffffff"  # restore, penalty 127, bytes
        "| 00000000",
        (
            wire.emit_sack,
            (
                0x123, 0xFFFFFF, wire.SACK_ALWAYS_SKIP | wire.SACK_PROBE_ANSWER, 7, 0, 0x4567, 0, 0, -64, 1, 0xFFFF,
                0x7FFF, 0xFFFFFFFF,
            ),
        ),
        {
            "BTH": {"opcode": 0xDC, "dqpn": 0x123, "psn": 0xFFFFFF},
            "SETH": {
                "m": 2, "pr": 1, "offset_or_probe": 7, "spdcid": 0x4567, "dpdcid": 0x123, "cack": 0xFFFFFF,
                "sack_offset": -64, "bitmap": 1,
            },
            "CCState": {
                "timestamp": 0xFFFF, "out_of_order": 0x7FFF, "restore_cwnd": 1, "penalty": 127, "received": 0xFFFFFF,
            },
        },
    ),
    "nack": Vector(
        "dd 00 ffff 00 000123 20 000041"
        "| 0000 02 00 0302c000 4567 0123 00 000041 20 00 1234"  # TRIMMED_LASTHOP; EV; PSN; cc_type 2; time echoed
        "| 00000000",
        (wire.emit_nack, (0x123, RTX | 0x41, wire.NACK_TRIMMED_LASTHOP, 0x0302C000, 0x4567, 0x1234)),
        {
            "BTH": {"opcode": 0xDD, "dqpn": 0x123, "rtx": 1, "psn": 0x41},
            "NETH": {
                "reason": 2, **EV_3_2, "spdcid": 0x4567, "dpdcid": 0x123, "nack_psn": 0x41, "cc_type": 2,
                "timestamp": 0x1234,
            },
        },
    ),
    "reliability probe": Vector(
        "de 00 ffff 00 000123 00 000000 | 000000 00 0007 0000 4567 0123 1234 8001 | 00000000",
        (wire.emit_probe, (0x123, 7, 0x4567, 0x1234)),
        {
            "BTH": {"opcode": 0xDE, "dqpn": 0x123},
            "PETH": {
                "probe_id": 7, "spdcid": 0x4567, "dpdcid": 0x123, "timestamp": 0x1234, "tsr": 1, "ftype": 1,
            },
        },
    ),
}  # fmt: skip
"""Names -> packets; all opcodes of 6.2 are among them. The ICRC is off, so 0."""
