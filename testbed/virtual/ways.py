"""From where a host sends to the ports that its packets leave by: by an address that names the path, or by the hash by
which switches choose one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mrc_testbed.hosts.common.ecmp import flow_hash, hash_of_ports, next_hop
from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.switching.ecmp import PlainFlow, hash_seed, unpredictable
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.packet import VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.nodes import Host, Interface
from mrc_testbed.topos.plan import Plan

if TYPE_CHECKING:
    from mrc_testbed.hosts import udp

_PROTOCOLS = {"tcp": 6, "udp": 17}
_ROCE_PORT = 4791
K = TypeVar("K")
V = TypeVar("V")
MOST_WAYS = 1 << 16
"""A fabric of hashed ways remembers this number of them, 40 MB at the most, and then begins again: those of 128 hosts
with 512 EVs each. What is forgotten is worked out again, and is the same."""


Toward = tuple[int, int, int]
"""A plane, the group of a T0 there, and the group that a packet is for."""


class Topology:
    """All ports of a fabric, and which of them a packet leaves by, one after the other."""

    def __init__(self, plan: Plan, ports: dict[Interface, Port]) -> None:
        self._uplinks = plan.shape.t1
        self._by_name = {(own.node, own.name): port for own, port in ports.items()}

    def nic(self, host: Host, plane: int) -> Port:
        """A port of a host."""
        return self._by_name[host.name, names.port_of_plane(plane)]

    def uplinks(self, switch: str) -> list[Port]:
        """The ports of a T0 towards its T1s."""
        return [self._by_name[switch, names.uplink_port(t1)] for t1 in range(self._uplinks)]

    def downlink(self, plane: int, t1: int, group: int) -> Port:
        """The port of a T1 towards the T0 of a group."""
        return self._by_name[names.switch_name(plane, 1, t1), names.downlink_port(group)]

    def between(self, source: Host, destination: Host, plane: int, uplink: int) -> list[Port]:
        """The ports from host to host. Inside a T0 group no T1 is crossed."""
        first, last = (names.switch_name(plane, 0, host.group) for host in (source, destination))
        ports = [self.nic(source, plane)]
        if source.group != destination.group:
            ports += self._by_name[first, names.uplink_port(uplink)], self.downlink(plane, uplink, destination.group)
        return [*ports, self._by_name[last, names.downlink_port(destination.downlink)]]


class Ways(Protocol):
    """How the packets of a fabric find their way."""

    def way(self, source: Host, destination: Any) -> VirtualWay:
        """To where a sending socket of this host was told to send. Raises ValueError if there is no such host."""

    def choose(self, packet: VirtualPacket) -> Sequence[Port]:
        """The ports of a packet whose switch chooses them; none if it has no next hop."""

    def predicted(self, flows: Sequence[PlainFlow]) -> list[int]:
        """The uplink of each flow now. Raises MissingCapability, FabricError."""

    def ports_changed(self) -> None:
        """A port went down or came up."""


class SourceWays:
    """The host chooses: the destination is an address that names plane and uplink."""

    def __init__(self, plan: Plan, topology: Topology) -> None:
        self._plan = plan
        self._topology = topology

    def way(self, source: Host, destination: udp.Address) -> VirtualWay:
        """As of `Ways`."""
        address, _, flow_label, _ = destination
        number, path = usid.split_inner(address)
        shape = self._plan.shape
        if number >= shape.hosts or path.plane >= shape.planes or path.uplink >= max(shape.t1, 1):
            raise ValueError(f"{address} is no path of this fabric")
        ports = self._topology.between(source, self._plan.hosts[number], path.plane, path.uplink)
        numbers = (source.index, number)
        return VirtualWay(ports, *numbers, path.plane, path.uplink, source.udp_port, flow_label, *numbers)

    def choose(self, packet: VirtualPacket) -> Sequence[Port]:
        """Switches choose nothing here."""
        return ()

    def predicted(self, flows: Sequence[PlainFlow]) -> list[int]:
        """No flow has a single uplink."""
        if flows:
            raise MissingCapability("hosts choose the path of each packet", "ask only with routing: ecmp-static")
        return []

    def ports_changed(self) -> None:
        """Packets go on into a dead link."""


class HashedWays:
    """Each T0 chooses among the uplinks that have carrier: the destination is a source port and an address."""

    def __init__(self, plan: Plan, options: FabricOptions, topology: Topology, seed: int) -> None:
        self._plan = plan
        self._options = options
        self._topology = topology
        first = seed if options.hash_seed is None else options.hash_seed
        self._seeds = {switch.name: hash_seed(plan, switch.name, options.ecmp_hash, first) for switch in plan.switches}
        self._hosts = {address: (host, plane) for host in plan.hosts for plane, address in plan.host_ports(host)}
        self._known: dict[tuple[int, udp.Way], VirtualWay] = {}
        """By host and destination: a flow has one way, however often its host asks."""
        self._hashes: dict[VirtualWay, int] = {}
        self._chosen: dict[VirtualWay, Sequence[Port]] = {}

    def way(self, source: Host, destination: udp.Way) -> VirtualWay:
        """As of `Ways`."""
        way = self._known.get((source.index, destination))
        if way is None:
            way = remember(self._known, (source.index, destination), self._new_way(source, destination))
        return way

    def _new_way(self, source: Host, destination: udp.Way) -> VirtualWay:
        source_port, (address, _, flow_label, _) = destination
        if address not in self._hosts:
            raise ValueError(f"{address} is the address of no host")
        target, plane = self._hosts[address]
        across = source.group != target.group
        ports = [self._topology.nic(source, plane)] if across else self._topology.between(source, target, plane, 0)
        keys = [plain.host_bits(host.group, host.downlink) for host in (source, target)]
        return VirtualWay(ports, source.index, target.index, plane, 0, source_port, flow_label, keys[0], keys[1])

    def _flow(self, way: VirtualWay) -> PlainFlow:
        hosts = self._plan.hosts
        return PlainFlow(hosts[way.source], hosts[way.destination], way.plane, "udp", way.source_port, _ROCE_PORT)

    def _hash(self, flow: PlainFlow, flow_label: int) -> int:
        """What the T0 of the sender makes of a flow."""
        seed = self._seeds[names.switch_name(flow.plane, 0, flow.source.group)]
        protocol, ports = _PROTOCOLS[flow.protocol], (flow.source_port, flow.destination_port)
        label = flow_label if self._options.repath else None
        if self._options.hash_ports:
            return hash_of_ports(protocol, ports, seed, label or 0)
        source, destination = (dict(self._plan.host_ports(host))[flow.plane] for host in flow[:2])
        return flow_hash(source, destination, protocol, ports, seed, label)

    def choose(self, packet: VirtualPacket) -> Sequence[Port]:
        """As of `Ways`; the answer holds until a port changes."""
        ports = self._chosen.get(packet.way)
        if ports is None:
            ports = remember(self._chosen, packet.way, self._ports_now(packet.way))
        return ports

    def _ports_now(self, way: VirtualWay) -> Sequence[Port]:
        flow, hash_ = self._flow(way), self._hashes.get(way)
        if hash_ is None:
            hash_ = remember(self._hashes, way, self._hash(flow, way.flow_label))
        uplink = self._uplink(flow, hash_)
        return () if uplink is None else self._topology.between(flow.source, flow.destination, flow.plane, uplink)

    def _uplink(self, flow: PlainFlow, hash_: int) -> int | None:
        t0 = names.switch_name(flow.plane, 0, flow.source.group)
        toward = flow.plane, flow.source.group, flow.destination.group
        uplinks = enumerate(self._topology.uplinks(t0))
        hops = [number for number, port in uplinks if port.live and self._leads_on(toward, number)]
        return hops[next_hop(hash_, len(hops))] if hops else None

    def _leads_on(self, _toward: Toward, _uplink: int) -> bool:
        """False for a T1 that, as a T0 knows, has lost its link to the group: static routes do not."""
        return True

    def predicted(self, flows: Sequence[PlainFlow]) -> list[int]:
        """As of `Ways`; 0 within a T0 group."""
        if why := unpredictable(self._options):
            raise MissingCapability(f"the path of a flow cannot be predicted: {why}", "leave it off")
        return [self._predicted(flow) if flow.source.group != flow.destination.group else 0 for flow in flows]

    def _predicted(self, flow: PlainFlow) -> int:
        uplink = self._uplink(flow, self._hash(flow, 0))
        if uplink is None:
            t0 = names.switch_name(flow.plane, 0, flow.source.group)
            raise FabricError(t0, f"find the way to {flow.destination.name}", "no uplink has carrier")
        return uplink

    def ports_changed(self) -> None:
        """Every T0 looks at its uplinks again."""
        self._chosen.clear()


def remember(known: dict[K, V], key: K, value: V) -> V:
    if len(known) >= MOST_WAYS:
        known.clear()
    known[key] = value
    return value
