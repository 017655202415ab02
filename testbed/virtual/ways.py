"""From where a host sends to the ports that its packets leave by: by an address that names the path, or by the hash by
which switches choose one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from mrc_testbed.hosts.common.ecmp import flow_hash, hash_of_ports, next_hop
from mrc_testbed.hosts.self_probes import PROBE_LABEL, PROBE_PORT
from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.switching.ecmp import PlainFlow, hash_seed, number_of_way, unpredictable
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.packet import VirtualPacket, VirtualWay
from mrc_testbed.testbed.virtual.port import Port
from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.graph import SwitchPlace, Way
from mrc_testbed.topos.nodes import Host, Interface
from mrc_testbed.topos.plan import Plan

if TYPE_CHECKING:
    from mrc_testbed.hosts import udp

_PROTOCOLS = {"tcp": 6, "udp": 17}
_ROCE_PORT = 4791
K = TypeVar("K")
V = TypeVar("V")
Standing = tuple[VirtualWay, Port, int]
"""A packet of a way in a switch: the port that it left by last, and how many it has left by."""
MOST_WAYS = 1 << 16
"""A fabric of hashed ways remembers this number of them, 40 MB at the most, and then begins again: those of 128 hosts
with 512 EVs each. What is forgotten is worked out again, and is the same."""


Toward = tuple[str, int]
"""A switch, and the group that a packet is for."""


class PortTo(NamedTuple):
    """A port of a switch, and the switch that it leads to."""

    port: Port
    switch: str


class Topology:
    """All ports of a fabric, and which of them a packet leaves by, one after the other."""

    def __init__(self, plan: Plan, ports: dict[Interface, Port]) -> None:
        self._plan = plan
        self._toward = {(own.node, port.peer.interface.node): port for own, port in ports.items()}
        self._hops: dict[Toward, tuple[PortTo, ...]] = {}

    def nic(self, host: Host, plane: int) -> Port:
        """A port of a host."""
        return self._toward[host.name, names.switch_name(plane, 0, host.group)]

    def hops(self, toward: Toward) -> tuple[PortTo, ...]:
        """Where a switch may send packets for a group, in the order of its ports; none if no way leads there."""
        hops = self._hops.get(toward)
        if hops is None:
            switch = self._plan.switch_by_name[toward[0]]
            places = self._plan.next_places(switch.place).get(toward[1], ())
            found = (names.switch_name(switch.plane, *place) for place in places)
            hops = self._hops[toward] = tuple(PortTo(self._toward[switch.name, name], name) for name in found)
        return hops

    def along(self, source: Host, destination: Host, plane: int, way: Way) -> tuple[Port, ...]:
        """The ports from host to host on a way."""
        switches = (names.switch_name(plane, *place) for place in way)
        nodes = (source.name, *switches, destination.name)
        return tuple(self._toward[one, other] for one, other in pairwise(nodes))

    def through(self, nodes: Sequence[str]) -> tuple[Port, ...]:
        """The ports from node to node; none where two are not joined."""
        pairs = list(pairwise(nodes))
        return tuple(self._toward[pair] for pair in pairs) if all(pair in self._toward for pair in pairs) else ()

    def onward(self, switch: str, destination: Host, first: PortTo) -> tuple[Port, ...]:
        """The ports from a switch that has chosen `first` to the next one that has a choice, or to the host."""
        ports, hop = [first.port], first
        while True:
            last = self._toward.get((hop.switch, destination.name))
            if last is not None:
                return (*ports, last)
            hops = self.hops((hop.switch, destination.group))
            if len(hops) > 1:
                return tuple(ports)
            hop = hops[0]
            ports.append(hop.port)


class Ways(Protocol):
    """How the packets of a fabric find their way."""

    def way(self, source: Host, destination: Any) -> VirtualWay:
        """To where a sending socket of this host was told to send. Raises ValueError if there is no such host."""

    def loop(self, source: Host, uids: str) -> VirtualWay:
        """From a host along a list of uSIDs and back to itself. Raises ValueError for a list that leads elsewhere, or
        where hosts choose no paths."""

    def choose(self, packet: VirtualPacket) -> tuple[Port, ...]:
        """The ports of a packet whose switch chooses them; none if it has no next hop."""

    def predicted(self, flows: Sequence[PlainFlow]) -> list[int]:
        """The number of each flow's way now. Raises MissingCapability, FabricError."""

    def ports_changed(self) -> None:
        """A port went down or came up."""


class SourceWays:
    """The host chooses: the destination is an address that names plane and way."""

    def __init__(self, plan: Plan, topology: Topology) -> None:
        self._plan = plan
        self._topology = topology

    def way(self, source: Host, destination: udp.Address) -> VirtualWay:
        """As of `Ways`."""
        address, _, flow_label, _ = destination
        number, path = usid.split_inner(address)
        shape, hosts = self._plan.shape, self._plan.hosts
        ways = self._plan.ways(source, hosts[number]) if number < len(hosts) else ()
        if path.plane >= shape.planes or path.uplink >= len(ways):
            raise ValueError(f"{address} is no path of this fabric")
        ports = self._topology.along(source, hosts[number], path.plane, ways[path.uplink])
        numbers = (source.index, number)
        return VirtualWay(ports, *numbers, path.plane, path.uplink, source.udp_port, flow_label, *numbers)

    def loop(self, source: Host, uids: str) -> VirtualWay:
        """From a host along a list of uSIDs and back to itself. Raises ValueError for a list that leads elsewhere."""
        *switches, last = (usid.split_usid(number) for number in usid.split_container(uids))
        named = (names.switch_name(plane, tier - usid.TIER_T0, index) for tier, plane, index in switches)
        ports = self._topology.through([source.name, *named, source.name])
        _, plane, downlink = last
        if not ports or downlink != source.downlink:
            raise ValueError(f"{uids} does not lead from {source.name} back to it")
        numbers = (source.index, source.index)
        return VirtualWay(ports, *numbers, plane, PROBE_LABEL, PROBE_PORT, PROBE_LABEL, *numbers)

    def choose(self, packet: VirtualPacket) -> tuple[Port, ...]:
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
    """Each switch chooses among its ports that have carrier: the destination is a source port and an address."""

    def __init__(self, plan: Plan, options: FabricOptions, topology: Topology, seed: int) -> None:
        self._plan = plan
        self._options = options
        self._topology = topology
        first = seed if options.hash_seed is None else options.hash_seed
        self._seeds = {switch.name: hash_seed(plan, switch.name, options.ecmp_hash, first) for switch in plan.switches}
        self._hosts = {address: (host, plane) for host in plan.hosts for plane, address in plan.host_ports(host)}
        self._known: dict[tuple[int, udp.Way], VirtualWay] = {}
        """By host and destination: a flow has one way, however often its host asks."""
        self._hashes: dict[tuple[VirtualWay, int], int] = {}
        """By seed: all switches with one make the same of a flow."""
        self._chosen: dict[Standing, tuple[Port, ...]] = {}

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
        near = (SwitchPlace(0, source.group),)
        ports = (self._topology.nic(source, plane),) if across else self._topology.along(source, target, plane, near)
        keys = [plain.host_bits(host.group, host.downlink) for host in (source, target)]
        return VirtualWay(ports, source.index, target.index, plane, 0, source_port, flow_label, keys[0], keys[1])

    def loop(self, source: Host, uids: str) -> VirtualWay:
        """As of `Ways`: there is none."""
        raise ValueError(f"{source.name} chooses no paths, and {uids} is one")

    def _flow(self, way: VirtualWay) -> PlainFlow:
        hosts = self._plan.hosts
        return PlainFlow(hosts[way.source], hosts[way.destination], way.plane, "udp", way.source_port, _ROCE_PORT)

    def _hash(self, flow: PlainFlow, flow_label: int, seed: int) -> int:
        """What a switch with this seed makes of a flow."""
        protocol, ports = _PROTOCOLS[flow.protocol], (flow.source_port, flow.destination_port)
        label = flow_label if self._options.repath else None
        if self._options.hash_ports:
            return hash_of_ports(protocol, ports, seed, label or 0)
        source, destination = (dict(self._plan.host_ports(host))[flow.plane] for host in flow[:2])
        return flow_hash(source, destination, protocol, ports, seed, label)

    def choose(self, packet: VirtualPacket) -> tuple[Port, ...]:
        """As of `Ways`; the answer holds until a port changes."""
        standing = packet.way, packet.ports[-1], packet.hop
        ports = self._chosen.get(standing)
        if ports is None:
            ports = remember(self._chosen, standing, self._ports_now(packet.way, packet.ports))
        return ports

    def _ports_now(self, way: VirtualWay, so_far: tuple[Port, ...]) -> tuple[Port, ...]:
        switch, destination = so_far[-1].peer.interface.node, self._plan.hosts[way.destination]
        hop = self._hop((switch, destination.group), self._hash_of(way, self._seeds[switch]))
        return () if hop is None else (*so_far, *self._topology.onward(switch, destination, hop))

    def _hash_of(self, way: VirtualWay, seed: int) -> int:
        hash_ = self._hashes.get((way, seed))
        if hash_ is None:
            hash_ = remember(self._hashes, (way, seed), self._hash(self._flow(way), way.flow_label, seed))
        return hash_

    def _hop(self, toward: Toward, hash_: int) -> PortTo | None:
        """Where a hash leads from a switch that has a choice."""
        hops = [hop for hop in self._topology.hops(toward) if hop.port.live and self._leads_on(hop.switch, toward[1])]
        return hops[next_hop(hash_, len(hops))] if hops else None

    def _leads_on(self, _switch: str, _group: int) -> bool:
        """False for a switch that, as others know, has no way left to the group: static routes do not."""
        return True

    def predicted(self, flows: Sequence[PlainFlow]) -> list[int]:
        """As of `Ways`; 0 within a T0 group."""
        if why := unpredictable(self._options):
            raise MissingCapability(f"the path of a flow cannot be predicted: {why}", "leave it off")
        return [self._predicted(flow) if flow.source.group != flow.destination.group else 0 for flow in flows]

    def _predicted(self, flow: PlainFlow) -> int:
        switch = names.switch_name(flow.plane, 0, flow.source.group)
        crossed = [switch]
        while switch != names.switch_name(flow.plane, 0, flow.destination.group):
            hop = self._predicted_hop(flow, switch)
            if hop is None:
                lost = "no uplink has carrier" if len(crossed) == 1 else "no port on a way has carrier"
                raise FabricError(switch, f"find the way to {flow.destination.name}", lost)
            switch = hop.switch
            crossed.append(switch)
        return number_of_way(self._plan, flow, crossed)

    def _predicted_hop(self, flow: PlainFlow, switch: str) -> PortTo | None:
        """A switch with one way on has no choice, and sends into it if it is dead."""
        toward = switch, flow.destination.group
        hops = self._topology.hops(toward)
        if len(hops) == 1 and self._plan.switch_by_name[switch].tier:
            return hops[0]
        return self._hop(toward, self._hash(flow, 0, self._seeds[switch]))

    def ports_changed(self) -> None:
        """Every switch looks at its ports again."""
        self._chosen.clear()


def remember(known: dict[K, V], key: K, value: V) -> V:
    if len(known) >= MOST_WAYS:
        known.clear()
    known[key] = value
    return value
