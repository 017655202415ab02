"""Shape -> Plan: every name, number, address, link and path of the fabric, as data.

A Plan is what the kernel must hold, with the routes of `mrc_testbed.topos.tables`; `mrc_testbed.testbed.fabric` writes
both and reads them back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise, permutations
from typing import NamedTuple

from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.graph import Cable, SwitchPlace, Way
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Host, Interface, Link, Path, Switch
from mrc_testbed.topos.routes import Carries, Routing
from mrc_testbed.topos.shape import Shape

_ADDRESSES = 1 << 16
"""Of each kind that are remembered: hosts of one T0 send to the same ones, and are asked one after the other."""


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
    answers: bool = False
    """Each switch has its uSID as an address of its own, and routes to the hosts, so that it can answer them."""

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

    @cached_property
    def rates_bps(self) -> dict[Interface, int]:
        """The rate of each interface, which is that of its link."""
        return {end: link.rate_bps for link in self.links for end in link.ends}

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
        return self.shape.family.ways_of(src.group, dst.group)

    def paths(self, src: Host, dst: Host) -> list[Path]:
        """All paths from `src` to `dst`, sorted by plane, then way. A host has no path to itself."""
        if src == dst:
            return []
        ways = self.ways(src, dst)
        return [self._path(src, dst, plane, n, way) for plane in range(self.shape.planes) for n, way in enumerate(ways)]

    def _path(self, src: Host, dst: Host, plane: int, number: int, way: Way) -> Path:
        path_id = usid.PathId(plane, number)
        outer = _outer_address(plane, way, dst.downlink)
        return Path(path_id, way, _inner_address(dst.index, path_id), outer)

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

    def answering(self) -> Plan:
        """The same fabric with switches that answer, where senders choose paths and all routes are written."""
        return replace(self, answers=self.by_usid and not self.switches_choose)

    def peers_of(self, host: Host) -> list[Host]:
        """The hosts that it has paths to, where the sender chooses them."""
        if self.talking is None:
            return [other for other in self.hosts if other is not host]
        return self._peers.get(host.index, [])

    @cached_property
    def _peers(self) -> dict[int, list[Host]]:
        found: dict[int, list[Host]] = {}
        for src, dst in sorted(self.talking or ()):
            found.setdefault(src, []).append(self.hosts[dst])
        return found

    def next_places(self, place: SwitchPlace) -> dict[int, tuple[SwitchPlace, ...]]:
        """By T0 group, the switches that come next on the shortest ways from this one, in the order of its ports: what
        it hashes over. A group that no way over it leads to is left out."""
        return self._next_places.get(place, {})

    @cached_property
    def _next_places(self) -> dict[SwitchPlace, dict[int, tuple[SwitchPlace, ...]]]:
        # Each hop has fewer to go than the one before, so no packet goes in circles whatever a family gives.
        found: dict[SwitchPlace, dict[int, dict[SwitchPlace, int]]] = {}
        groups = range(self.shape.family.tiers[0])
        for source, target in permutations(groups, 2):
            for way in self.shape.family.ways(source, target):
                for left, (place, following) in zip(range(len(way) - 1, 0, -1), pairwise(way), strict=True):
                    hops = found.setdefault(place, {}).setdefault(target, {})
                    hops[following] = min(left, hops.get(following, left))
        return {
            place: {group: _shortest(towards[group], beside) for group in sorted(towards)}
            for place, towards in found.items()
            for beside in [self.beside(place)]
        }

    def beside(self, place: SwitchPlace) -> list[SwitchPlace]:
        """The switches that a switch is linked to, in the order of its ports."""
        ports = self.ports[names.switch_name(0, *place)]
        return [self.switch_by_name[peer.node].place for _, peer in ports if peer.node in self.switch_by_name]


def _shortest(hops: dict[SwitchPlace, int], beside: Iterable[SwitchPlace]) -> tuple[SwitchPlace, ...]:
    least = min(hops.values())
    return tuple(place for place in beside if hops.get(place) == least)


@lru_cache(maxsize=_ADDRESSES)
def _inner_address(host: int, path: usid.PathId) -> str:
    return usid.inner_address(host, path)


@lru_cache(maxsize=_ADDRESSES)
def _outer_address(plane: int, way: Way, downlink: int) -> str:
    return usid.outer_address(usid.Segments(plane, way, downlink))


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
