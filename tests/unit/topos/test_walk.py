"""Walk the routes of a plan as uSID switches would: every path reaches its host over exactly its links.

The walker knows what RFC 9800 (NEXT-C-SID) and a routing table do, and takes only routes and cables from the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from ipaddress import IPv6Address, IPv6Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.topos import usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.nodes import Host, Interface
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import Route, RouteKind
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.tables import routes_of
from mrc_testbed.topos.usid import PathId
from tests.examples import examples
from tests.small_families import every

BLOCK_BITS, UID_BITS, MAX_HOPS = 32, 16, 16


class LostError(Exception):
    """A packet that no host received."""


class Table:
    """Longest prefix match over the routes of a node."""

    def __init__(self, routes: Iterator[Route]) -> None:
        self.routes: dict[tuple[int, int], Route] = {}
        for route in routes:
            network = IPv6Network(route.prefix)
            self.routes[network.prefixlen, int(network.network_address)] = route
        self.lengths = sorted({length for length, _ in self.routes}, reverse=True)

    def match(self, address: int) -> Route:
        for length in self.lengths:
            shift = 128 - length
            route = self.routes.get((length, address >> shift << shift))
            if route is not None:
                return route
        raise LostError(f"no route to {IPv6Address(address)}")


class Walker:
    """A packet through the fabric, node by node."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.peers = {(own.node, own.name): (own, peer) for ports in plan.ports.values() for own, peer in ports}
        self.cables = {frozenset((link.near, link.far)): link.name for link in plan.links}
        self.table = cache(lambda node: Table(routes_of(plan, node)))

    def send(self, src: str, inner: str) -> tuple[str, list[str]]:
        """The host that takes the packet, and the links passed."""
        route = self.table(src).match(int(IPv6Address(inner)))
        if route.kind is not RouteKind.ENCAP:
            raise LostError(f"{src} does not encapsulate {inner}")
        node, outer = src, int(IPv6Address(route.target))
        passed: list[str] = []
        for _ in range(MAX_HOPS):
            route = self.table(node).match(outer)
            if route.kind is RouteKind.DT6:
                return self.take(node, inner), passed
            if route.kind is RouteKind.END:
                outer = shifted(outer)
                route = self.table(node).match(outer)
            own, peer = self.follow(node, route)
            passed.append(self.cables[frozenset((own, peer))])
            node = peer.node
        raise LostError(f"{inner} goes in circles: {passed}")

    def follow(self, node: str, route: Route) -> tuple[Interface, Interface]:
        if route.kind is not RouteKind.VIA:
            raise LostError(f"{node} has {route} where a neighbour is needed")
        own, peer = self.peers[node, route.device]
        assert route.target == peer.link_local, "the gateway is the interface at the other end of the cable"
        return own, peer

    def take(self, node: str, inner: str) -> str:
        if self.table(node).match(int(IPv6Address(inner))).kind is not RouteKind.LOCAL:
            raise LostError(f"{node} decapsulates {inner}, which is not its own")
        return node


def shifted(outer: int) -> int:
    """Drop the uSID that has been reached and move the others up (RFC 9800, NEXT-C-SID)."""
    block = outer >> (128 - BLOCK_BITS)
    rest = outer & (1 << (128 - BLOCK_BITS - UID_BITS)) - 1
    if rest == 0:
        raise LostError("a switch is the last uSID: nothing is left to shift in")
    return block << (128 - BLOCK_BITS) | rest << UID_BITS


def check(walker: Walker, src: Host, dst: Host, path_id: PathId, inner: str) -> None:
    taken_by, passed = walker.send(src.name, inner)
    assert taken_by == dst.name
    assert passed == walker.plan.links_on_path(src, dst, path_id)


small_shapes = st.builds(Shape, st.integers(1, 2), every, st.just(10**8), st.just(0))


@settings(max_examples=examples(20), deadline=None)
@given(small_shapes)
def test_every_path_of_a_small_fabric_arrives(shape: Shape) -> None:
    plan = build_plan(shape)
    walker = Walker(plan)
    for src in plan.hosts:
        for dst in plan.hosts:
            for path in plan.paths(src, dst):
                check(walker, src, dst, path.id, path.inner)
            if src is not dst:
                assert walker.send(src.name, dst.address)[0] == dst.name


TWO_TIERS = [(16, 2, 256, 1), (16, 2, 2, 16), (1, 256, 3, 1), (4, 2, 4, 4), (16, 16, 16, 1), (2, 1, 0, 256)]
BIG = [
    clos2_shape(*TWO_TIERS[0], 10**8, 0),
    Shape(2, Clos3(pods=4, t0=2, t1=4, t2=256, hosts_per_t0=4), 10**8, 0),
    Shape(4, Rail(rails=8, nodes=16, spine=16, segments=4), 10**8, 0),
    *(clos2_shape(*sizes, 10**8, 0) for sizes in TWO_TIERS[1:]),
    Shape(16, Clos3(pods=128, t0=2, t1=2, t2=2, hosts_per_t0=1), 10**8, 0),
]


@pytest.mark.parametrize("shape", BIG, ids=lambda shape: f"{shape.planes}-{shape.family.word}-{shape.family.tiers}")
@pytest.mark.nightly(keep=3)
def test_the_paths_between_the_far_ends_of_a_big_fabric_arrive(shape: Shape) -> None:
    plan = build_plan(shape)
    walker = Walker(plan)
    for src, dst in ((plan.hosts[0], plan.hosts[-1]), (plan.hosts[-1], plan.hosts[0])):
        for path in plan.paths(src, dst):
            check(walker, src, dst, path.id, path.inner)


def test_paths_between_two_hosts_share_no_t1_and_no_plane_twice() -> None:
    plan = build_plan(clos2_shape(4, 2, 4, 4, 10**8, 0))
    src, dst = plan.hosts[0], plan.hosts[-1]
    routes = [tuple(plan.links_on_path(src, dst, path.id)) for path in plan.paths(src, dst)]
    assert len(set(routes)) == 16
    assert len({links[1] for links in routes}) == 16


def test_the_walker_loses_what_a_switch_would_lose() -> None:
    walker = Walker(build_plan(clos2_shape(1, 2, 1, 1, 10**8, 0)))
    with pytest.raises(LostError):
        walker.send("h0", "fd00:0:0:9::")
    with pytest.raises(LostError):
        shifted(int(IPv6Address("fcbb:bb00:1000::")))


def way_back(walker: Walker, switch: str, host: Host, number: int) -> list[str]:
    """The nodes that an answer of a switch passes until it is there; with `number` of each list of next hops."""
    address, node = int(IPv6Address(usid.asking_address(host.index, number))), switch
    passed: list[str] = []
    while node != host.name:
        assert len(passed) < MAX_HOPS, "it goes in circles"
        route = walker.table(node).match(address)
        hop = route.hops[number % len(route.hops)] if route.hops else None
        device = hop.device if hop else route.device
        assert (node, device) in walker.peers, f"{node} has {route} for {host.name}"
        node = walker.peers[node, device][1].node
        passed.append(node)
    return passed


@settings(deadline=None, max_examples=examples(40))
@given(small_shapes, st.integers(0, 3))
def test_what_a_switch_says_reaches_every_host_by_the_shortest_way(shape: Shape, number: int) -> None:
    plan = build_plan(shape).answering()
    walker = Walker(plan)
    for switch in plan.switches:
        crossed = {*plan.next_places(switch.place), *([] if switch.tier else [switch.index])}
        for host in (host for host in plan.hosts if host.group in crossed):
            passed = way_back(walker, switch.name, host, number)
            tiers = [plan.switch_by_name[node].tier for node in passed[:-1]]
            assert len(set(passed)) == len(passed)
            assert tiers == [] or tiers[-1] == 0


def test_a_switch_asked_for_a_host_that_is_cut_off_says_it_to_nobody() -> None:
    plan = build_plan(Shape(1, Clos3(2, 2, 2, 4, 2), 10**8, 0)).answering()
    for switch in ("p0-t0-0", "p0-t1-0"):
        table = Table(route for route in routes_of(plan, switch) if not route.device.startswith("down"))
        assert table.match(int(IPv6Address(usid.plain_address(0)))).kind is RouteKind.BLACKHOLE
        assert table.match(int(IPv6Address(usid.plain_address(7)))).kind is RouteKind.MULTIPATH


def test_an_address_of_no_switch_on_the_list_stays_without_a_route() -> None:
    plan = build_plan(clos2_shape(1, 2, 2, 1, 10**8, 0)).answering()
    for switch in plan.switches:
        with pytest.raises(LostError):
            Table(routes_of(plan, switch.name)).match(int(IPv6Address("fcbb:bb00:2009::")))
