"""Questions as packets, and answers read from ICMPv6 (RFC 4443).

A list is an IPv6 destination that switches shift, so a packet for a switch has the checksum of the last address on it,
which is the one that the switch sees (RFC 9800, 6.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address
from struct import pack, unpack_from

from mrc_testbed.testbed.oam.probes import HopSays, Probe
from mrc_testbed.topos import usid

_HEADER_BYTES = 40
_IPV6, _ICMP6 = 41, 58
_ECHO_REQUEST, _ECHO_REPLY = 128, 129
_KINDS = {
    (3, 0): HopSays.HOPS_ENDED,
    (1, 0): HopSays.NO_ROUTE,
    (4, 1): HopSays.NOT_TAKEN,
}
_PADDING = bytes(56)
"""As `ping` sends; the port program looks for the headers of MRC in packets that are long enough for them."""
_HOPS = 64
WAYS_BACK = 1 << 10
"""Addresses that questions come from, one after the other."""


def packet_of(probe: Probe, identifier: int) -> bytes:
    """The IPv6 packet of a question, which waits with data in queues. `identifier`: of the asking program, 16 bits."""
    source = IPv6Address(usid.asking_address(probe.source.index, 1 + probe.number % WAYS_BACK)).packed
    outer = IPv6Address(probe.list_address).packed
    echo = pack(">BBHHH", _ECHO_REQUEST, 0, 0, identifier, probe.number & 0xFFFF) + _PADDING
    if probe.target is None or probe.path is None:
        last = IPv6Address(usid.container(probe.uids[-1:])).packed
        sealed = _sealed(echo, source, last)
        return _header(0, len(sealed), _ICMP6, _HOPS) + source + outer + sealed
    label = probe.path.flow_label
    ends = (IPv6Address(usid.inner_address(host.index, probe.path)).packed for host in (probe.source, probe.target))
    own, its = ends
    inner = _header(label, len(echo), _ICMP6, _HOPS) + own + its + _sealed(echo, own, its)
    return _header(label, len(inner), _IPV6, probe.hops) + source + outer + inner


def _header(flow_label: int, length: int, following: int, hops: int) -> bytes:
    return pack(">IHBB", 6 << 28 | flow_label, length, following, hops)


def _sealed(message: bytes, source: bytes, destination: bytes) -> bytes:
    """With its checksum (RFC 4443, 2.3)."""
    data = source + destination + pack(">II", len(message), _ICMP6) + message
    total = sum(unpack_from(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return message[:2] + pack(">H", ~total & 0xFFFF) + message[4:]


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as it came: to which question, by its number in 16 bits, and what was left on the quoted list."""

    kind: HopSays
    number: int
    left: tuple[int, ...] = ()


def heard(message: bytes, identifier: int) -> Heard | None:
    """What an ICMPv6 message says to this program; None for one to somebody else."""
    if len(message) < 8:
        return None
    kind = _KINDS.get((message[0], message[1]))
    if kind is None:
        number = _number(message, identifier, _ECHO_REPLY)
        return None if number is None else Heard(HopSays.REPLY, number)
    quoted = message[8:]
    at = _HEADER_BYTES * (2 if len(quoted) > 6 and quoted[6] == _IPV6 else 1)
    number = _number(quoted[at:], identifier, _ECHO_REQUEST)
    return None if number is None else Heard(kind, number, _left(quoted[24:_HEADER_BYTES]))


def _number(echo: bytes, identifier: int, kind: int) -> int | None:
    if len(echo) < 8 or echo[0] != kind or unpack_from(">H", echo, 4)[0] != identifier:
        return None
    number: int = unpack_from(">H", echo, 6)[0]
    return number


def _left(destination: bytes) -> tuple[int, ...]:
    address = str(IPv6Address(destination))
    return tuple(usid.split_container(address)) if usid.is_in_block(address) else ()
