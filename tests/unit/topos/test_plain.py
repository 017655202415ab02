"""Fabrics whose switches choose the path: their addresses, and routes that lead every packet to its host."""

from __future__ import annotations

import hashlib
from ipaddress import IPv6Address, IPv6Network
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.fabric.commands import route_line
from mrc_testbed.topos import plain
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import Route, RouteKind, Routing
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.tables import routes_of
from mrc_testbed.topos.usid import PathId

unhurried = settings(deadline=None, max_examples=20)
small = st.integers(1, 3)
small_shapes = st.tuples(small, small, small, st.integers(2, 3)).map(lambda sizes: clos2_shape(*sizes, 25_000_000, 0))


@unhurried
@given(small_shapes)
def test_plain_routes_lead_every_packet_to_its_host_over_every_choice(shape: Shape) -> None:
    plan = build_plan(shape, Routing.ECMP_STATIC)
    tables = {node: list(routes_of(plan, node)) for node in plan.node_names}
    for src, dst in permutations(plan.hosts, 2):
        for plane, address in plan.host_ports(dst):
            for uplink in range(shape.family.tiers[1] if src.group != dst.group else 1):
                way = plan.links_on_path(src, dst, PathId(plane, uplink))
                assert walked(plan, tables, src.name, address, uplink) == way


def walked(plan: Plan, tables: dict[str, list[Route]], node: str, address: str, choice: int) -> list[str]:
    """The links that a packet takes by the longest prefixes of each node's table."""
    target, links = IPv6Address(address), []
    while address not in {port for host in plan.hosts if host.name == node for _, port in plan.host_ports(host)}:
        fitting = [route for route in tables[node] if target in IPv6Network(route.prefix)]
        route = max(fitting, key=lambda route: IPv6Network(route.prefix).prefixlen)
        device = route.hops[choice].device if route.hops else route.device
        peer = next(peer for own, peer in plan.ports[node] if own.name == device)
        links.append(next(link.name for link in plan.links if peer in link.ends))
        node = peer.node
    return links


def test_what_is_left_of_a_cut_off_host_is_thrown_away_at_its_t0() -> None:
    plan = build_plan(clos2_shape(1, 2, 2, 1, 25_000_000, 0), Routing.ECMP_STATIC)
    kinds = {route.prefix: route.kind for route in routes_of(plan, "p0-t0-1")}
    assert kinds["fd00:1:0:1::/64"] is RouteKind.BLACKHOLE, "it would go up to a T1 and come back"
    assert plan.address_of(plan.hosts[1]) == "fd00:1:0:1::1"


def test_a_plan_of_srv6_is_what_it_was_before_there_was_another() -> None:
    plan = build_plan(clos2_shape(2, 2, 2, 2, 25_000_000, 0))
    told = "\n".join(str(route_line(route)) for node in plan.node_names for route in routes_of(plan, node))
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == "2b045c8f793e6602"
    assert all(plan.address_of(host) == host.address for host in plan.hosts)


@given(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65534))
def test_plain_addresses_and_their_parts(plane: int, group: int, downlink: int) -> None:
    address = plain.host_address(plane, group, downlink)
    assert IPv6Address(address) in IPv6Network(plain.group_prefix(plane, group))
    assert IPv6Network(plain.group_prefix(plane, group)).subnet_of(IPv6Network(plain.plane_prefix(plane)))
    assert plain.host_bits(group, downlink) == group << 16 | downlink + 1


@pytest.mark.parametrize("numbers", [(1 << 16, 0, 0), (0, 1 << 16, 0), (0, 0, 65535), (-1, 0, 0)])
def test_a_number_too_wide_for_its_field_is_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit 16 bits"):
        plain.host_address(*numbers)
