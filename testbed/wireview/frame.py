"""From a frame, also of `tcpdump -i any`, down to the MRC packet: the IPv6 headers around it and what was cut off.

A switch that trims may rewrite the outer payload length alone (MRC's way is not public): what the inner header claims
beyond the outer one is `trimmed`. Ours correct all lengths: then only the DSCP says that something is missing, not how
much. A capture with a snapshot length is something else: `cut`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.wireview.names import OPCODES
from mrc_testbed.testbed.wireview.record import LINK_ETHERNET, LINK_IPV6, LINK_RAW, LINK_SLL, LINK_SLL2, Record

MRC_PORT = 4791
"""UDP destination port of RoCEv2 (docs/protocol.md, "On the wire")."""

_LINKS: dict[int, tuple[int, int]] = {LINK_ETHERNET: (12, 14), LINK_SLL: (14, 16), LINK_SLL2: (0, 20)}
"""By link type: where the ethertype is, and the size of its header. Source: the pcap link-layer header types."""
_IP_ALONE = (LINK_RAW, LINK_IPV6)
_IPV6_BYTES = 40
_UDP_BYTES = 8
_ETHERTYPE_IPV6 = b"\x86\xdd"
_NEXT_UDP = 17
_NEXT_IPV6 = 41
_NEXT_ROUTING = 43
_CUT = -1
_IPV6_VERSION = 6
_PKEY = b"\xff\xff"
"""The default partition of InfiniBand; MRC has no other."""


class Foreign(Enum):
    """Why a frame holds no MRC packet; the values are shown to people."""

    LINK_TYPE = "a link type other than Ethernet, raw IP and that of `tcpdump -i any`"
    SHORT = "cut within its headers"
    NOT_IPV6 = "not IPv6"
    NOT_UDP = "IPv6, not UDP"
    OTHER_PORT = "UDP, not to port 4791, and no MRC by its look"


@dataclass(slots=True)
class Frame:
    """The surroundings of an MRC packet.

    `outer`: destination of the encapsulating header, b"" without one; `traffic_class`: of the outermost header, by
    which switches decide; `trimmed`, `cut`: payload bytes removed by a switch that left a trace of them, or by the
    capture; `port`: UDP destination port.
    """

    time_ns: int
    outer: bytes
    traffic_class: int
    source: bytes
    destination: bytes
    flow_label: int
    source_port: int
    port: int
    trimmed: int
    cut: int
    payload: memoryview

    @property
    def says_trimmed(self) -> bool:
        """By its DSCP."""
        return self.traffic_class >> 2 in (wire.DSCP_TRIMMED, wire.DSCP_TRIMMED_LASTHOP)


def unwrap(record: Record) -> Frame | Foreign:
    """IPv6 (in IPv6), UDP to port 4791 or with what looks like MRC, or what it is instead."""
    frame = record.frame
    outermost = _ipv6_at(record)
    if isinstance(outermost, Foreign):
        return outermost
    inner = outermost
    below, kind = _below_ipv6(frame, inner)
    if kind == _NEXT_IPV6:
        inner = below
        below, kind = _below_ipv6(frame, inner)
    if kind != _NEXT_UDP:
        return Foreign.SHORT if kind == _CUT else Foreign.NOT_UDP
    if len(frame) < below + _UDP_BYTES:
        return Foreign.SHORT
    found = _frame(record, outermost, inner, below)
    return found if found.port == MRC_PORT or _looks_like_mrc(found.payload) else Foreign.OTHER_PORT


def _ipv6_at(record: Record) -> int | Foreign:
    """Where the outermost IPv6 header begins."""
    frame = record.frame
    if record.link_type in _IP_ALONE:
        return 0 if frame[:1] and frame[0] >> 4 == _IPV6_VERSION else Foreign.NOT_IPV6
    if record.link_type not in _LINKS:
        return Foreign.LINK_TYPE
    ethertype, size = _LINKS[record.link_type]
    if frame[ethertype : ethertype + 2] != _ETHERTYPE_IPV6:
        return Foreign.NOT_IPV6 if len(frame) >= size else Foreign.SHORT
    return size


def _looks_like_mrc(payload: memoryview) -> bool:
    """By opcode, version and P_Key, as the Wireshark dissector knows it on other ports."""
    known = len(payload) >= bth.BTH_BYTES + bth.ICRC_BYTES and payload[0] in OPCODES
    return known and not payload[1] & 0xF and bytes(payload[2:4]) == _PKEY


def _frame(record: Record, outermost: int, inner: int, udp: int) -> Frame:
    """From where the IPv6 headers and the UDP header begin."""
    frame = record.frame
    end = min(outermost + _IPV6_BYTES + _word(frame, outermost + 4), record.wire_bytes)
    claimed = udp + _word(frame, udp + 4)
    there = min(claimed, end)
    return Frame(
        time_ns=record.time_ns,
        outer=frame[outermost + 24 : outermost + 40] if inner != outermost else b"",
        traffic_class=_word(frame, outermost) >> 4 & 0xFF,
        source=frame[inner + 8 : inner + 24],
        destination=frame[inner + 24 : inner + 40],
        flow_label=(frame[inner + 1] & 0xF) << 16 | _word(frame, inner + 2),
        source_port=_word(frame, udp),
        port=_word(frame, udp + 2),
        trimmed=max(0, claimed - end),
        cut=max(0, there - len(frame)),
        payload=memoryview(frame)[udp + _UDP_BYTES : there],
    )


def _below_ipv6(frame: bytes, at: int) -> tuple[int, int]:
    """Offset and protocol of the header after the IPv6 header (and its SRH, if any), or _CUT."""
    below = at + _IPV6_BYTES
    if len(frame) < below:
        return below, _CUT
    kind = frame[at + 6]
    if kind != _NEXT_ROUTING:
        return below, kind
    if len(frame) < below + 8:
        return below, _CUT
    return below + 8 + 8 * frame[below + 1], frame[below]


def _word(frame: bytes, at: int) -> int:
    return frame[at] << 8 | frame[at + 1]
