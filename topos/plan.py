"""Shape -> Plan: every name, number, address, link and route of the fabric, as data.

A Plan is what the kernel must hold; `mrc_testbed.testbed.fabric` writes it and reads it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from functools import cached_property
from ipaddress import IPv6Address
from itertools import pairwise, permutations
from typing import NamedTuple

from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.graph import Cable, SwitchPlace, Way
from mrc_testbed.topos.shape import Shape

SID_DEVICE = "sid0"
"""The device of uSID routes. It never goes down; on `lo` the kernel would turn them into reject routes."""
FIRST_IFINDEX = 1000
FIRST_UDP_PORT = 0xC000
UDP_PORTS = 0x3F00
_LINK_LOCAL = 0xFE80 << 112


class Routing(StrEnum):
    """Who chooses the path of a packet. The values are the words of the scenario key `routing`."""

    SRV6 = "srv6"
    """The sender: the packet's address lists the switches."""
    ECMP_STATIC = "ecmp-static"
    """Each switch, by a hash of the packet over all its next hops, which never change but with its own ports."""
    BGP = "bgp"
    """Switches tell each other by BGP what they reach: hosts, whose packets they hash over all next hops found, or each
    other, where the sender chooses the path."""


class Carries(StrEnum):
    """What BGP carries between switches. The values are the words of the scenario key `bgp.carries`."""

    HOSTS = "hosts"
    """Routes to the plain addresses of hosts."""
    LOCATORS = "locators"
    """Routes to the uSIDs of switches: where the next one on a packet's list is, each switch has learned."""


class RouteKind(Enum):
    """The kind of a route in the kernel."""

    END = "End"
    """Shift the uSID list and look up the new address (a switch's own uSID)."""
    DT6 = "End.DT6"
    """Remove the outer header (a host's own uSID)."""
    VIA = "via"
    """Plain next hop towards a neighbour's uSID."""
    ENCAP = "encap"
    """Add the outer header with a path's uSID list."""
    LOCAL = "local"
    """Accept a whole prefix as local."""
    MULTIPATH = "multipath"
    """One of several next hops, by a hash of the packet."""
    BLACKHOLE = "blackhole"
    """Throw away what no longer route covers."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """A neighbour, and the port towards it."""

    gateway: str
    device: str


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `target` is the gateway (VIA) or the outer address (ENCAP), else empty.

    `hops`: the next hops of MULTIPATH, whose `device` is empty. `source`: the address that packets of this node itself
    get, where the route says so.
    """

    kind: RouteKind
    prefix: str
    device: str
    target: str = ""
    source: str = ""
    hops: tuple[NextHop, ...] = ()


@dataclass(frozen=True, slots=True)
class Interface:
    """One end of a link. `ifindex` is unique in the whole fabric; `mac` and `link_local` derive from it."""

    node: str
    name: str
    ifindex: int

    @property
    def mac(self) -> str:
        """Locally administered, unicast, ifindex in the last four bytes."""
        return "02:00:" + self.ifindex.to_bytes(4, "big").hex(":")

    @property
    def link_local(self) -> str:
        """The next-hop address for neighbours; the interface need not hold it, because the neighbour entry is
        static."""
        return str(IPv6Address(_LINK_LOCAL | self.ifindex))


@dataclass(frozen=True, slots=True)
class Link:
    """A link. `near` is the end closer to the hosts, `far` the other; `rate_bps` is that of each way."""

    name: str
    plane: int
    near: Interface
    far: Interface
    rate_bps: int

    @property
    def ends(self) -> tuple[Interface, Interface]:
        """Both ends, the nearer first."""
        return self.near, self.far

    @property
    def is_host_link(self) -> bool:
        """True for a NIC port, False for a link between switches."""
        return names.parse_host(self.near.node) is not None


@dataclass(frozen=True, slots=True)
class Host:
    """A host: number `index` of the fabric, on downlink `downlink` of the T0s of group `group`."""

    name: str
    index: int
    group: int
    downlink: int

    @property
    def udp_port(self) -> int:
        """The source port of its data socket: EV[15:0]."""
        return FIRST_UDP_PORT + self.index % UDP_PORTS

    @property
    def address(self) -> str:
        """The address outside the EV scheme."""
        return usid.plain_address(self.index)


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of a plane: `tier` 0 (T0, `index` = group) or above, and its number in that tier."""

    name: str
    tier: int
    plane: int
    index: int

    @property
    def usid(self) -> int:
        """Its 16-bit uSID."""
        return usid.switch_usid(self.plane, self.place)

    @property
    def place(self) -> SwitchPlace:
        """The same in every plane."""
        return SwitchPlace(self.tier, self.index)


@dataclass(frozen=True, slots=True)
class Path:
    """One path between two hosts: its EV half, its switches, the destination of the sender (inner), its uSID list
    (outer)."""

    id: usid.PathId
    way: Way
    inner: str
    outer: str


@dataclass(frozen=True)
class Plan:
    """The whole fabric. Build one with `build_plan`."""

    shape: Shape
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    routing: Routing = Routing.SRV6
    by_usid: bool = True
    """The address of a packet lists the switches on its way."""
    carries: Carries = Carries.HOSTS
    """What BGP carries, where it is spoken."""
    talking: frozenset[tuple[int, int]] | None = None
    """Hosts that choose paths have them to each other in these pairs of numbers, both ways; None: in all."""
    _ways: dict[tuple[int, int], tuple[Way, ...]] = field(default_factory=dict, repr=False, compare=False)
    _outers: dict[tuple[int, int, int, int], str] = field(default_factory=dict, repr=False, compare=False)
    _inners: dict[tuple[int, int, int], str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def learns(self) -> bool:
        """Switches have routes by BGP."""
        return self.routing is Routing.BGP

    @property
    def learns_locators(self) -> bool:
        """The switches on a packet's list are found by routes of BGP."""
        return self.learns and self.carries is Carries.LOCATORS

    @property
    def has_plain_addresses(self) -> bool:
        """Hosts have an address in each plane, to which switches choose the way."""
        return not self.by_usid or (self.learns and self.carries is Carries.HOSTS)

    @property
    def switches_choose(self) -> bool:
        """Switches may have several next hops to one address, and leave out those whose port is dead."""
        return self.routing is not Routing.SRV6

    @cached_property
    def host_by_name(self) -> dict[str, Host]:
        """Hosts by name."""
        return {host.name: host for host in self.hosts}

    @cached_property
    def switch_by_name(self) -> dict[str, Switch]:
        """Switches by name."""
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def link_by_name(self) -> dict[str, Link]:
        """Links by name."""
        return {link.name: link for link in self.links}

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """Hosts, then switches."""
        return (*(host.name for host in self.hosts), *(switch.name for switch in self.switches))

    @cached_property
    def ports(self) -> dict[str, list[tuple[Interface, Interface]]]:
        """The interfaces of each node, each with its peer interface."""
        found: dict[str, list[tuple[Interface, Interface]]] = {name: [] for name in self.node_names}
        for link in self.links:
            found[link.near.node].append((link.near, link.far))
            found[link.far.node].append((link.far, link.near))
        return found

    def neighbour_addresses(self, own: Interface, peer: Interface) -> tuple[str, ...]:
        """The addresses by which the node of `own` may name its neighbour at `peer` as a next hop."""
        return (
            (peer.link_local, plain.transfer_address(peer.ifindex))
            if self.speaks_bgp(own, peer)
            else (peer.link_local,)
        )

    def speaks_bgp(self, own: Interface, peer: Interface) -> bool:
        """True if the nodes at both ends of a link are switches that talk BGP over it."""
        return self.learns and {own.node, peer.node} <= self.switch_by_name.keys()

    def links_of(self, node: str) -> list[Link]:
        """Every link with an end on `node`. Raises KeyError for an unknown node."""
        return list(self._links_by_node[node])

    @cached_property
    def _links_by_node(self) -> dict[str, list[Link]]:
        found: dict[str, list[Link]] = {name: [] for name in self.node_names}
        for link in self.links:
            found[link.near.node].append(link)
            found[link.far.node].append(link)
        return found

    def ways(self, src: Host, dst: Host) -> tuple[Way, ...]:
        """The switches of each path from `src` to `dst` in a plane, by its number; below one T0 there is one way."""
        if src.group == dst.group:
            return ((SwitchPlace(0, src.group),),)
        pair = src.group, dst.group
        found = self._ways.get(pair)
        if found is None:
            found = self._ways[pair] = tuple(self.shape.family.ways(*pair))
        return found

    def paths(self, src: Host, dst: Host) -> list[Path]:
        """All paths from `src` to `dst`, sorted by plane, then way. A host has no path to itself."""
        if src == dst:
            return []
        ways = self.ways(src, dst)
        return [self._path(src, dst, plane, n, way) for plane in range(self.shape.planes) for n, way in enumerate(ways)]

    def _path(self, src: Host, dst: Host, plane: int, number: int, way: Way) -> Path:
        path_id = usid.PathId(plane, number)
        inner_key = (dst.index, plane, number)
        inner = self._inners.get(inner_key)
        if inner is None:
            inner = self._inners[inner_key] = usid.inner_address(dst.index, path_id)
        outer_key = (src.group, dst.index, plane, number)
        outer = self._outers.get(outer_key)
        if outer is None:
            outer = self._outers[outer_key] = usid.outer_address(usid.Segments(plane, way, dst.downlink))
        return Path(path_id, way, inner, outer)

    def switches_on_path(self, src: Host, dst: Host, path: usid.PathId) -> list[str]:
        """Names of the switches on a packet's way, in order. Raises IndexError for a path that is none."""
        return [names.switch_name(path.plane, *place) for place in self.ways(src, dst)[path.uplink]]

    def links_on_path(self, src: Host, dst: Host, path: usid.PathId) -> list[str]:
        """Names of the links on a packet's way, in order. Raises ValueError if `src` is `dst`, IndexError for a path
        that is none."""
        if src == dst:
            raise ValueError(f"{src.name} has no path to itself")
        nodes = [src.name, *self.switches_on_path(src, dst, path), dst.name]
        return [self.link_between(one, other).name for one, other in pairwise(nodes)]

    def link_between(self, one: str, other: str) -> Link:
        """The link that joins two nodes. Raises KeyError if none does."""
        return self._link_by_ends[one, other]

    @cached_property
    def _link_by_ends(self) -> dict[tuple[str, str], Link]:
        ends = {(link.near.node, link.far.node): link for link in self.links}
        return ends | {(far, near): link for (near, far), link in ends.items()}

    def port_toward(self, node: str, other: str) -> Interface:
        """The interface of `node` on its link to `other`. Raises KeyError if no link joins them."""
        link = self.link_between(node, other)
        return link.near if link.near.node == node else link.far

    def host_ports(self, host: Host) -> list[tuple[int, str]]:
        """(plane, address) of each port of a host, where the switches choose the path."""
        planes = range(self.shape.planes)
        return [(plane, plain.host_address(plane, host.group, host.downlink)) for plane in planes]

    def address_of(self, host: Host) -> str:
        """The address by which a person reaches a host: that of plane 0, or the one outside the EV scheme."""
        return host.address if self.by_usid else self.host_ports(host)[0][1]

    def with_paths_between(self, pairs: Iterable[tuple[int, int]]) -> Plan:
        """The same fabric with encap routes between these hosts alone: their number grows with the square of hosts."""
        return replace(self, talking=frozenset(pair for a, b in pairs for pair in ((a, b), (b, a))))

    def routes(self, node: str) -> Iterator[Route]:
        """Every route of `node` under `routing` that is written, not learned."""
        host = self.host_by_name.get(node)
        if self.by_usid:
            yield from self._switch_routes(self.switch_by_name[node]) if host is None else self._host_routes(host)
        if self.has_plain_addresses:
            switches = self.switch_by_name
            yield from self._plain_switch_routes(switches[node]) if host is None else self._plain_host_routes(host)

    def _plain_host_routes(self, host: Host) -> Iterator[Route]:
        for (own, peer), (plane, address) in zip(self.ports[host.name], self.host_ports(host), strict=True):
            yield Route(RouteKind.VIA, plain.plane_prefix(plane), own.name, peer.link_local, source=address)

    def _plain_switch_routes(self, switch: Switch) -> Iterator[Route]:
        for own, peer in self.ports[switch.name]:
            host = self.host_by_name.get(peer.node)
            if host is not None:
                address = plain.host_address(switch.plane, host.group, host.downlink)
                yield Route(RouteKind.VIA, f"{address}/128", own.name, peer.link_local)
        yield from self._unlearned(switch) if self.learns else self._hashed_routes(switch)

    def _unlearned(self, switch: Switch) -> Iterator[Route]:
        # What BGP has no route for is thrown away without a message. A T0 may announce its own group whole.
        yield Route(RouteKind.BLACKHOLE, plain.plane_prefix(switch.plane), "lo")
        if switch.tier == 0:
            yield Route(RouteKind.BLACKHOLE, plain.group_prefix(switch.plane, switch.index), "lo")

    def _hashed_routes(self, switch: Switch) -> Iterator[Route]:
        towards = self.next_places(switch.place)
        used = {place for places in towards.values() for place in places} if switch.tier == 0 else ()
        above = tuple(place for place in self._beside(switch.place) if place in used)
        for group, places in towards.items():
            if places != above:
                yield self._toward(switch, plain.group_prefix(switch.plane, group), places)
        if above and above in towards.values():
            # Packets to a host of its own that is cut off would go up, come down again, and up: until their hops end.
            yield Route(RouteKind.BLACKHOLE, plain.group_prefix(switch.plane, switch.index), "lo")
            hops = tuple(self._hop(switch, place) for place in above)
            yield Route(RouteKind.MULTIPATH, plain.plane_prefix(switch.plane), "", hops=hops)

    def _toward(self, switch: Switch, prefix: str, places: tuple[SwitchPlace, ...]) -> Route:
        hops = tuple(self._hop(switch, place) for place in places)
        if len(hops) > 1:
            return Route(RouteKind.MULTIPATH, prefix, "", hops=hops)
        return Route(RouteKind.VIA, prefix, hops[0].device, hops[0].gateway)

    def _hop(self, switch: Switch, place: SwitchPlace) -> NextHop:
        link = self.link_between(switch.name, names.switch_name(switch.plane, *place))
        own, peer = link.ends if link.near.node == switch.name else link.ends[::-1]
        return NextHop(peer.link_local, own.name)

    def next_places(self, place: SwitchPlace) -> dict[int, tuple[SwitchPlace, ...]]:
        """By T0 group, the switches that come next on the ways over this one, in the order of its ports: what it
        hashes over. A group that no way over it leads to is left out."""
        return self._next_places.get(place, {})

    @cached_property
    def _next_places(self) -> dict[SwitchPlace, dict[int, tuple[SwitchPlace, ...]]]:
        found: dict[SwitchPlace, dict[int, set[SwitchPlace]]] = {}
        groups = range(self.shape.family.tiers[0])
        for source, target in permutations(groups, 2):
            for way in self.shape.family.ways(source, target):
                for place, following in pairwise(way):
                    found.setdefault(place, {}).setdefault(target, set()).add(following)
        return {
            place: {group: tuple(each for each in beside if each in towards[group]) for group in sorted(towards)}
            for place, towards in found.items()
            for beside in [self._beside(place)]
        }

    def _beside(self, place: SwitchPlace) -> list[SwitchPlace]:
        """The switches that a switch is linked to, in the order of its ports."""
        ports = self.ports[names.switch_name(0, *place)]
        return [self.switch_by_name[peer.node].place for _, peer in ports if peer.node in self.switch_by_name]

    def _switch_routes(self, switch: Switch) -> Iterator[Route]:
        yield Route(RouteKind.END, usid.locator(switch.usid), SID_DEVICE)
        for own, peer in self.ports[switch.name]:
            if not (self.learns_locators and self.speaks_bgp(own, peer)):
                locator = usid.locator(self._usid_of(peer.node, switch.plane))
                yield Route(RouteKind.VIA, locator, own.name, peer.link_local)

    def _usid_of(self, node: str, plane: int) -> int:
        host = self.host_by_name.get(node)
        if host is None:
            return self.switch_by_name[node].usid
        return usid.usid(usid.TIER_HOST, plane, host.downlink)

    def _host_routes(self, host: Host) -> Iterator[Route]:
        yield Route(RouteKind.LOCAL, usid.host_prefix(host.index), "lo")
        for own, peer in self.ports[host.name]:
            switch = self.switch_by_name[peer.node]
            own_usid = usid.usid(usid.TIER_HOST, switch.plane, host.downlink)
            yield Route(RouteKind.VIA, usid.locator(switch.usid), own.name, peer.link_local)
            yield Route(RouteKind.DT6, usid.locator(own_usid), SID_DEVICE)
        for dst in self.hosts:
            if dst is not host and (self.talking is None or (host.index, dst.index) in self.talking):
                paths = self.paths(host, dst)
                yield Route(RouteKind.ENCAP, f"{dst.address}/128", SID_DEVICE, paths[0].outer)
                for path in paths:
                    yield Route(RouteKind.ENCAP, f"{path.inner}/128", SID_DEVICE, path.outer)


def build_plan(
    shape: Shape, routing: Routing = Routing.SRV6, by_usid: bool | None = None, carries: Carries = Carries.HOSTS
) -> Plan:
    """Number and name everything in a fabric of this shape. Pure: the same arguments give the same plan.

    `by_usid`: the sender names the path; None: as with `routing: srv6` alone. `carries`: what BGP does, where spoken.
    """
    family = shape.family
    downlinks = {host: downlink for below in family.below for downlink, host in enumerate(below)}
    hosts = tuple(Host(names.host_name(i), i, family.t0_of(i), downlinks[i]) for i in range(family.hosts))
    places = list(family.switches())
    switches = tuple(
        Switch(names.switch_name(plane, *place), *_of_plane(plane, place))
        for plane in range(shape.planes)
        for place in places
    )
    names_paths = routing is Routing.SRV6 if by_usid is None else by_usid
    return Plan(shape, hosts, switches, tuple(_links(shape, hosts)), routing, names_paths, carries)


def _of_plane(plane: int, place: SwitchPlace) -> tuple[int, int, int]:
    return place.tier, plane, place.number


class _End(NamedTuple):
    node: str
    port: str


def _links(shape: Shape, hosts: tuple[Host, ...]) -> Iterator[Link]:
    number = 0
    cables = _numbered_cables(shape)
    for plane in range(shape.planes):
        to_hosts = [
            (_End(host.name, names.port_of_plane(plane)), _End(names.switch_name(plane, 0, host.group), port), 1.0)
            for host in hosts
            for port in [names.downlink_port(host.downlink)]
        ]
        between = [
            (_End(names.switch_name(plane, *lower), up), _End(names.switch_name(plane, *upper), down), share)
            for (lower, upper, share), up, down in cables
        ]
        for near, far, share in (*to_hosts, *between):
            index = FIRST_IFINDEX + 2 * number
            ends = Interface(*near, index), Interface(*far, index + 1)
            yield Link(names.link_name(near.node, far.node), plane, *ends, round(shape.port_rate_bps * share))
            number += 1


def _numbered_cables(shape: Shape) -> list[tuple[Cable, str, str]]:
    """Each cable with its port at the lower and at the upper end: numbered at each switch from 0 on, up and down; on a
    T0 its hosts come first."""
    family, up, down = shape.family, Counter[SwitchPlace](), Counter[SwitchPlace]()
    down.update({SwitchPlace(0, group): len(below) for group, below in enumerate(family.below)})
    found = []
    for cable in family.cables():
        found.append((cable, names.uplink_port(up[cable.lower]), names.downlink_port(down[cable.upper])))
        up[cable.lower] += 1
        down[cable.upper] += 1
    return found
