"""Frames as they would be on a wire: all headers that packets of the virtual network do not carry with them.

They are those that the kernel makes for an endpoint's packets: IPv6 in IPv6 whose outer address is shifted by every
switch, or plain IPv6; UDP without a checksum. tests/emu/test_capture_worlds.py compares them with the kernel's.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from struct import Struct
from typing import NamedTuple

from mrc_testbed.hosts.rc.wire import UDP_PORT
from mrc_testbed.hosts.self_probes import PROBE_PORT
from mrc_testbed.testbed.virtual.packet import VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.topos import usid
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

_ETHERNET = Struct(">6s6sH")
_IPV6 = Struct(">IH34s")
_IPV6_REST = Struct(">BB16s16s")
_UDP = Struct(">HHHH")
_ETHERTYPE_IPV6 = 0x86DD
_VERSION = 6 << 28
_NEXT_IPV6, _NEXT_UDP = 41, 17
_HOPS = 64
"""Hop limit that Linux gives its packets; every switch takes one from that of the first header."""
_WHOLE = 1 << 16


class _Headers(NamedTuple):
    """What the frames of a way have in common on one link. `first`, `inner`: of IPv6 headers, what follows the length;
    `inner` is empty where nothing is tunnelled."""

    ethernet: bytes
    first: bytes
    inner: bytes


class Frames:
    """Makes the frames of a plan's packets."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[tuple[VirtualWay, Port], _Headers] = {}

    def leaving(self, port: Port, packet: VirtualPacket, most_bytes: int = _WHOLE) -> bytes:
        """The first bytes of a packet as it leaves by a port."""
        way, sent = packet.way, packet.sent or (packet.length, packet.traffic_class)
        size = sent[0] + _UDP.size
        headers = self._known.get((way, port))
        if headers is None:
            headers = self._known[way, port] = self._headers(port, way, packet.hop)
        ethernet, first, inner = headers
        ports = _UDP.pack(way.source_port, PROBE_PORT if _is_probe(way) else UDP_PORT, size, 0)
        outermost = _word(packet.traffic_class, way)
        if inner:
            parts = [_IPV6.pack(outermost, size + _IPV6.size, first), _IPV6.pack(_word(sent[1], way), size, inner)]
        else:
            parts = [_IPV6.pack(outermost, size, first)]
        parts.append(ports)
        above = ethernet + b"".join(parts)
        return (above + packet.whole()[: max(0, most_bytes - len(above))])[:most_bytes]

    def _headers(self, port: Port, way: VirtualWay, switches: int) -> _Headers:
        """Headers of a way's packets that have passed this number of switches."""
        ethernet = _ETHERNET.pack(_mac(port.peer.interface), _mac(port.interface), _ETHERTYPE_IPV6)
        left = _HOPS - switches
        if self._plan.by_usid:
            source, outer, inner = self._tunnelled(way, switches)
            return _Headers(ethernet, _rest(_NEXT_IPV6, left, source, outer), _rest(_NEXT_UDP, _HOPS, source, inner))
        hosts = (self._plan.hosts[number] for number in (way.source, way.destination))
        source, destination = (dict(self._plan.host_ports(host))[way.plane] for host in hosts)
        return _Headers(ethernet, _rest(_NEXT_UDP, left, source, destination), b"")

    def _tunnelled(self, way: VirtualWay, switches: int) -> tuple[str, str, str]:
        """Source, outer and inner destination of a packet that has passed this number of switches."""
        source, destination = self._plan.hosts[way.source], self._plan.hosts[way.destination]
        if _is_probe(way):
            passed = [port.peer.interface.node for port in way.ports[switches:-1]]
            uids = [self._plan.switch_by_name[node].usid for node in passed]
            own = usid.usid(usid.TIER_HOST, way.plane, source.downlink)
            return source.address, usid.container([*uids, own]), source.address
        path = usid.PathId(way.plane, way.uplink)
        switches_on_way = self._plan.ways(source, destination)[way.uplink]
        segments = usid.Segments(way.plane, switches_on_way, destination.downlink)
        left = usid.split_container(usid.outer_address(segments))[switches:]
        return source.address, usid.container(left), usid.inner_address(destination.index, path)


def _is_probe(way: VirtualWay) -> bool:
    """Of a host to itself, and so a probe."""
    return way.source == way.destination


def _word(traffic_class: int, way: VirtualWay) -> int:
    """The first word of an IPv6 header."""
    return _VERSION | traffic_class << 20 | way.flow_label


def _rest(following: int, hops: int, source: str, destination: str) -> bytes:
    """Of an IPv6 header, what follows the length."""
    addresses = (IPv6Address(address).packed for address in (source, destination))
    return _IPV6_REST.pack(following, hops, *addresses)


def _mac(interface: Interface) -> bytes:
    return bytes.fromhex(interface.mac.replace(":", ""))
