"""Scapy layers for every MRC header (spec, section 7, as its readers give it), not written from `hosts/mrc/wire.py`.

So they can serve as an oracle for it. Importing this module binds BTH to UDP destination port 4791, for building and
dissecting. `BTH(opcode=...)` computes pad count and ICRC unless they are given.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    IntField,
    ShortField,
    SignedShortField,
    StrField,
    StrFixedLenField,
    XByteEnumField,
    XByteField,
    XIntField,
    XLongField,
    XShortField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_bottom_up, bind_layers

from mrc_testbed.testbed.wireview.names import MARKS, NACK_REASONS, OPCODES, OPERATIONS, SYNDROMES

_ICRC_BYTES = 4


def _entropy(name: str = "ev") -> list[BitField]:
    """EV: version 4, plane 4, uplink (number of the way) 8, UDP source port 16 bits (topos/usid.py)."""
    sizes = {"version": 4, "plane": 4, "uplink": 8, "port": 16}
    return [BitField(f"{name}_{part}", 0, bits) for part, bits in sizes.items()]


def _timestamp() -> list[Any]:
    """TSETH and the end of PETH and ERTH: time in 8.192 us when tsr is 1, and the kind of field, 1."""
    return [ShortField("timestamp", 0), BitField("tsr", 1, 1), BitField("reserved_ts", 0, 11), BitField("ftype", 1, 4)]


class BTH(Packet):
    """Base transport header, 12 bytes (6.3); what follows depends on the opcode."""

    name = "MRC BTH"
    fields_desc = [  # noqa: RUF012  (scapy's own way)
        XByteEnumField("opcode", 0xCA, OPCODES),
        BitField("se", 0, 1),
        BitField("migration", 0, 1),
        BitField("pad", None, 2),
        BitField("version", 0, 4),
        XShortField("pkey", 0xFFFF),
        XByteField("variant", 0),
        BitField("dqpn", 0, 24),
        BitField("ack_request", 0, 1),
        BitField("r", 0, 1),
        BitField("rtx", 0, 1),
        BitField("ts", 0, 1),
        BitField("reserved", 0, 4),
        BitField("psn", 0, 24),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Pad count and ICRC, where they were left out."""
        if self.pad is None and Data in self:
            pkt = pkt[:1] + bytes([pkt[1] | -len(self[Data].data) % 4 << 4]) + pkt[2:]
        whole: bytes = pkt + pay
        if ICRC in self and self[ICRC].icrc is None:
            whole = whole[:-_ICRC_BYTES] + crc32(whole[:-_ICRC_BYTES]).to_bytes(_ICRC_BYTES, "big")
        return whole

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """METH for data, the header of its kind for control, raw bytes for opcodes that are not MRC."""
        return METH if 0xC6 <= self.opcode <= 0xCB else _CONTROL.get(self.opcode, Raw)


class METH(Packet):
    """Message numbers, 4 bytes (6.4)."""

    name = "MRC METH"
    fields_desc = [ShortField("rqmsn", 0), ShortField("msn", 0)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """TSETH when the BTH says so."""
        return TSETH if self.underlayer is None or self.underlayer.ts else RETH


class TSETH(Packet):
    """When the packet was sent, 4 bytes (6.4)."""

    name = "MRC TSETH"
    fields_desc = _timestamp()

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """A RETH is in every data packet."""
        return RETH


class RETH(Packet):
    """Where this packet's payload goes and how long the whole operation is, 16 bytes (6.4)."""

    name = "MRC RETH"
    fields_desc = [XLongField("address", 0), XIntField("rkey", 0), IntField("length", 0)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """An immediate, if the opcode has one; then the payload, if it was not trimmed away."""
        bth = _below(self, BTH)
        return ImmDt if bth is not None and bth.opcode in (0xC9, 0xCB) else Data


class ImmDt(Packet):
    """The immediate, 4 bytes (6.4)."""

    name = "MRC ImmDt"
    fields_desc = [XIntField("immediate", 0)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The payload."""
        return Data


class _UpToTrailer(StrField):
    """All bytes except padding and ICRC; all bytes for a packet cut before its ICRC."""

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, bytes]:
        bth = _below(pkt, BTH)
        end = len(s) - _ICRC_BYTES - (bth.pad if bth is not None else 0)
        return (s[end:], s[:end]) if end >= 0 else (b"", s)


class _Padding(StrField):
    """As many zeros as make the payload a multiple of 4."""

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, bytes]:
        end = max(0, len(s) - _ICRC_BYTES)
        return s[end:], s[:end]

    def i2m(self, pkt: Packet | None, x: bytes | None) -> bytes:
        return bytes(-len(pkt.data) % 4) if x is None and pkt is not None else x or b""


class Data(Packet):
    """The payload and its padding."""

    name = "MRC payload"
    fields_desc = [_UpToTrailer("data", b""), _Padding("padding", None)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class SETH(Packet):
    """The content of a SACK, 28 bytes (6.5). Bit i of `bitmap`, lowest first: PSN cack + sack_offset + i has
    arrived."""

    name = "MRC SETH"
    fields_desc = [  # noqa: RUF012
        BitField("type", 0, 4),
        BitField("next_header", 0, 5),
        BitEnumField("m", 0, 2, MARKS),
        BitField("reserved", 0, 3),
        BitField("pr", 0, 1),
        BitField("reserved0", 0, 1),
        SignedShortField("offset_or_probe", 0),
        *_entropy(),
        XShortField("spdcid", 0),
        XShortField("dpdcid", 0),
        XByteField("ports_down", 0),
        BitField("cack", 0, 24),
        BitField("cc_type", 0, 4),
        BitField("cc_fl", 0, 4),
        ByteField("mpr", 0),
        SignedShortField("sack_offset", 1),
        XLongField("bitmap", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The congestion state."""
        return CCState


class CCState(Packet):
    """CC_STATE of NSCC, 8 bytes after a SETH (6.5). `received`: bytes / 256 mod 2^24."""

    name = "MRC CC_STATE"
    fields_desc = [  # noqa: RUF012
        ShortField("timestamp", 0),
        BitField("reserved", 0, 1),
        BitField("out_of_order", 0, 15),
        BitField("restore_cwnd", 0, 1),
        BitField("penalty", 0, 7),
        BitField("received", 0, 24),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class NETH(Packet):
    """The content of a NACK, 20 bytes (6.6)."""

    name = "MRC NETH"
    fields_desc = [  # noqa: RUF012
        BitField("type", 0, 4),
        BitField("next_header", 0, 5),
        BitField("reserved", 0, 7),
        XByteEnumField("reason", 0, NACK_REASONS),
        XByteField("vendor", 0),
        *_entropy(),
        XShortField("spdcid", 0),
        XShortField("dpdcid", 0),
        XByteField("reserved12", 0),
        BitField("nack_psn", 0, 24),
        BitField("cc_type", 0, 4),
        BitField("cc_fl", 0, 4),
        XByteField("reserved17", 0),
        ShortField("timestamp", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class PETH(Packet):
    """Reliability probe, 16 bytes (6.7)."""

    name = "MRC PETH"
    fields_desc = [  # noqa: RUF012
        BitField("reserved", 0, 24),
        XByteField("vendor", 0),
        ShortField("probe_id", 0),
        XShortField("reserved6", 0),
        XShortField("spdcid", 0),
        XShortField("dpdcid", 0),
        *_timestamp(),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class ERTH(Packet):
    """Endpoint request, 16 bytes (6.8); bit n - 1 of the port mask: port n can be reached."""

    name = "MRC ERTH"
    fields_desc = [  # noqa: RUF012
        XByteField("reserved", 0),
        BitField("reserved1", 0, 6),
        BitEnumField("op", 0, 2, OPERATIONS),
        XByteField("reserved2", 0),
        XByteField("vendor", 0),
        XIntField("port_mask", 0),
        *_entropy("reply_ev"),
        *_timestamp(),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class EETH(Packet):
    """Endpoint response, 36 bytes (6.8). EV, port mask and mark are our use of reserved bytes."""

    name = "MRC EETH"
    fields_desc = [  # noqa: RUF012
        XByteField("reserved", 0),
        BitField("reserved1", 0, 4),
        BitEnumField("op", 0, 2, OPERATIONS),
        BitField("reserved1b", 0, 2),
        XShortField("reserved2", 0),
        *_entropy(),
        XIntField("port_mask", 0),
        ByteEnumField("m", 0, MARKS),
        StrFixedLenField("reserved13", bytes(15), 15),
        ShortField("timestamp", 0),
        StrFixedLenField("reserved30", bytes(6), 6),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class AETH(Packet):
    """Transport ACK or NAK, 4 bytes (6.9)."""

    name = "MRC AETH"
    fields_desc = [XByteEnumField("syndrome", 0x1F, SYNDROMES), BitField("msn", 0, 24)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The trailer."""
        return ICRC


class ICRC(Packet):
    """The trailer: CRC-32 over the UDP payload before it, 0 when it is off. None: computed by the BTH."""

    name = "MRC ICRC"
    fields_desc = [XIntField("icrc", None)]  # noqa: RUF012

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Nothing comes after it."""
        return b"", s


_CONTROL: dict[int, type[Packet]] = {0xD1: AETH, 0xD8: ERTH, 0xD9: EETH, 0xDC: SETH, 0xDD: NETH, 0xDE: PETH}


def _below(packet: Packet, kind: type[Packet]) -> Any:
    """The nearest layer of `kind` under `packet`, None when there is none."""
    layer = packet.underlayer
    while layer is not None and not isinstance(layer, kind):
        layer = layer.underlayer
    return layer


# 4791 both ways when dissecting; `UDP()/BTH()` sets only the destination.
bind_bottom_up(UDP, BTH, dport=4791)
bind_layers(UDP, BTH, dport=4791)
