"""Frames as they would be on a wire: all headers that packets of the virtual network do not carry with them.

They are those that the kernel makes for an endpoint's packets: IPv6 in IPv6 whose outer address is shifted by every
switch, or plain IPv6; UDP without a checksum.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from struct import Struct

from hosts.rc.wire import UDP_PORT
from testbed.virtual.packet import VirtualPacket, VirtualWay
from testbed.virtual.port import Port
from topos import usid
from topos.plan import Interface, Plan, Routing

_ETHERNET = Struct(">6s6sH")
_IPV6 = Struct(">IHBB16s16s")
_UDP = Struct(">HHHH")
_ETHERTYPE_IPV6 = 0x86DD
_VERSION = 6 << 28
_NEXT_IPV6, _NEXT_UDP = 41, 17
_HOPS = 64
"""Hop limit that Linux gives its packets; every switch takes one from that of the first header."""


class Frames:
    """Makes the frames of a plan's packets."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def leaving(self, port: Port, packet: VirtualPacket) -> bytes:
        """A packet as it leaves by a port."""
        way = packet.way
        word = _VERSION | packet.traffic_class << 20 | way.flow_label
        inner = _UDP.pack(way.source_port, UDP_PORT, _UDP.size + len(packet.data), 0) + packet.data
        hops = _HOPS - packet.hop
        if self._plan.routing is Routing.SRV6:
            source, outer, destination = self._tunnelled(way, packet.hop)
            inner = _ipv6(word, _NEXT_UDP, _HOPS, source, destination, inner)
            body = _ipv6(word, _NEXT_IPV6, hops, source, outer, inner)
        else:
            hosts = (self._plan.hosts[number] for number in (way.source, way.destination))
            source, destination = (dict(self._plan.host_ports(host))[way.plane] for host in hosts)
            body = _ipv6(word, _NEXT_UDP, hops, source, destination, inner)
        return _ETHERNET.pack(_mac(port.peer.interface), _mac(port.interface), _ETHERTYPE_IPV6) + body

    def _tunnelled(self, way: VirtualWay, switches: int) -> tuple[str, str, str]:
        """Source, outer and inner destination of a packet that has passed so many switches."""
        source, destination = self._plan.hosts[way.source], self._plan.hosts[way.destination]
        path = usid.PathId(way.plane, way.uplink)
        t1 = way.uplink if source.group != destination.group else None
        segments = usid.Segments(way.plane, source.group, t1, destination.group, destination.downlink)
        left = usid.split_container(usid.outer_address(segments))[switches:]
        return source.address, usid.container(left), usid.inner_address(destination.index, path)


def _ipv6(word: int, following: int, hops: int, source: str, destination: str, payload: bytes) -> bytes:
    addresses = (IPv6Address(address).packed for address in (source, destination))
    return _IPV6.pack(word, len(payload), following, hops, *addresses) + payload


def _mac(interface: Interface) -> bytes:
    return bytes.fromhex(interface.mac.replace(":", ""))
