"""The frames in which packets of the virtual network would stand on a link, byte for byte as the kernel sends them.

Sources: the routes of topos/plan.py, and captures of the kernel (tests/emu/test_capture_worlds.py compares both). The
outer header is that of a host's ENCAP route: hop limit and flow label of the inner one, and a uSID list that each
switch shifts by one. Each switch takes one off the hop limit of the outermost header. Marks and trims are written into
both headers. UDP has no checksum.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address
from struct import Struct
from typing import NamedTuple, Protocol

from testbed.virtual.packet import VirtualPacket, VirtualWay
from topos import plain, usid
from topos.plan import Host, Interface, Plan, Routing

_HOP_LIMIT = 64
_ETHERTYPE_IPV6 = b"\x86\xdd"
_NEXT_IPV6, _NEXT_UDP = 41, 17
_UDP_PORT = 4791
_VERSION = 6 << 28
_CLASS_SHIFT = 20
_IPV6_BYTES, _UDP_BYTES = 40, 8
_IPV6_END = Struct(">BB16s16s")
"""Of an IPv6 header, after its length: next header, hop limit, addresses."""
_UDP = "HHH2x"
_TUNNELLED = Struct(f">14s IH34s IH34s {_UDP}")
_PLAIN = Struct(f">14s IH34s {_UDP}")


class Headers(NamedTuple):
    """What all frames of a way have in common on one link; `inner` is empty where nothing is tunnelled."""

    ethernet: bytes
    flow_label: int
    outermost: bytes
    inner: bytes
    source_port: int

    def frame(self, traffic_class: int, payload: bytes, payload_bytes: int) -> bytes:
        """A frame of a UDP payload of so many bytes, of which `payload` is kept."""
        first = _VERSION | traffic_class << _CLASS_SHIFT | self.flow_label
        udp_bytes = payload_bytes + _UDP_BYTES
        ports = self.source_port, _UDP_PORT, udp_bytes
        if not self.inner:
            return _PLAIN.pack(self.ethernet, first, udp_bytes, self.outermost, *ports) + payload
        both = first, udp_bytes + _IPV6_BYTES, self.outermost, first, udp_bytes, self.inner
        return _TUNNELLED.pack(self.ethernet, *both, *ports) + payload


class Addressing(Protocol):
    """How the packets of a fabric are addressed. `header_bytes`: of a frame, up to the UDP payload."""

    header_bytes: int

    def ends(self, way: VirtualWay, hop: int) -> tuple[bytes, bytes]:
        """The outermost IPv6 header and that inside it (or none) after so many switches, each without its first 6
        bytes."""


class TunnelAddressing:
    """A packet names its switches."""

    header_bytes = _TUNNELLED.size

    def __init__(self, plan: Plan) -> None:
        self._hosts = plan.hosts

    def ends(self, way: VirtualWay, hop: int) -> tuple[bytes, bytes]:
        """As of `Addressing`."""
        source, destination = self._hosts[way.source], self._hosts[way.destination_key]
        path = usid.PathId(way.flow_label >> 8, way.uplink)
        t1 = None if source.group == destination.group else path.uplink
        segments = usid.Segments(path.plane, source.group, t1, destination.group, destination.downlink)
        left = usid.container(usid.split_container(usid.outer_address(segments))[hop:])
        inner = usid.inner_address(destination.index, path)
        return (
            _end(_NEXT_IPV6, _HOP_LIMIT - hop, source.address, left),
            _end(_NEXT_UDP, _HOP_LIMIT, source.address, inner),
        )


class PlainAddressing:
    """A packet has the addresses of two ports of `plane`."""

    header_bytes = _PLAIN.size

    def __init__(self, plan: Plan, plane: int) -> None:
        self._addresses: Mapping[int, str] = {
            plain.host_bits(host.group, host.downlink): _address_in(plan, host, plane) for host in plan.hosts
        }

    def ends(self, way: VirtualWay, hop: int) -> tuple[bytes, bytes]:
        """As of `Addressing`."""
        source, destination = self._addresses[way.source_key], self._addresses[way.destination_key]
        return _end(_NEXT_UDP, _HOP_LIMIT - hop, source, destination), b""


def _address_in(plan: Plan, host: Host, plane: int) -> str:
    return dict(plan.host_ports(host))[plane]


def _end(next_header: int, hop_limit: int, source: str, destination: str) -> bytes:
    return _IPV6_END.pack(next_header, hop_limit, IPv6Address(source).packed, IPv6Address(destination).packed)


class LinkFrames:
    """The frames of packets that leave by one port."""

    def __init__(self, plan: Plan, sender: Interface, receiver: Interface, plane: int) -> None:
        self._ethernet = _mac(receiver) + _mac(sender) + _ETHERTYPE_IPV6
        srv6 = plan.routing is Routing.SRV6
        self._addressing: Addressing = TunnelAddressing(plan) if srv6 else PlainAddressing(plan, plane)
        self._known: dict[VirtualWay, Headers] = {}

    def of(self, packet: VirtualPacket, most_bytes: int) -> bytes:
        """The first `most_bytes` of the packet's frame; they hold all headers up to UDP."""
        headers = self._known.get(packet.way)
        if headers is None:
            ends = self._addressing.ends(packet.way, packet.hop)
            headers = Headers(self._ethernet, packet.way.flow_label, *ends, packet.way.source_port)
            self._known[packet.way] = headers
        kept = packet.data[: most_bytes - self._addressing.header_bytes]
        return headers.frame(packet.traffic_class, kept, len(packet.data))


def _mac(interface: Interface) -> bytes:
    return bytes.fromhex(interface.mac.replace(":", ""))
