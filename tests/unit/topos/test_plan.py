"""A plan is deterministic, counts what the formulae count, and gives every number and name away once."""

from __future__ import annotations

import time
from ipaddress import IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.topos import names
from mrc_testbed.topos.budget import count_routes
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import RouteKind
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.tables import routes_of
from mrc_testbed.topos.usid import PathId
from tests.examples import examples
from tests.small_families import every

pytestmark = pytest.mark.slow

unhurried = settings(deadline=None, max_examples=examples(40))
RATE, RTT = 25_000_000, 20_000_000
IFNAMSIZ = 15
QUICKSTART = build_plan(clos2_shape(4, 2, 4, 4, RATE, RTT))


def shape_of(sizes: tuple[int, int, int, int]) -> Shape:
    return clos2_shape(*sizes, RATE, RTT)


small = st.integers(1, 4)
small_shapes = st.tuples(small, small, small, st.integers(2, 4)).map(shape_of)
wide_shapes = st.sampled_from(
    [(16, 2, 256, 1), (16, 2, 2, 256), (2, 256, 2, 1), (16, 16, 16, 4), (3, 1, 0, 256), (1, 256, 40, 3)]
).map(shape_of)
shapes = small_shapes | wide_shapes


def ends(plan: Plan) -> list[str]:
    return [f"{end.node}/{end.name}" for link in plan.links for end in (link.near, link.far)]


@unhurried
@given(shapes)
def test_the_same_shape_gives_the_same_plan(shape: Shape) -> None:
    one, two = build_plan(shape), build_plan(shape)
    assert one == two
    assert repr(one) == repr(two)


@unhurried
@given(small_shapes)
def test_looking_at_a_plan_does_not_change_its_routes(shape: Shape) -> None:
    plan = build_plan(shape)
    first = {node: list(routes_of(plan, node)) for node in plan.node_names}
    assert first == {node: list(routes_of(plan, node)) for node in reversed(plan.node_names)}
    assert plan == build_plan(shape)


@unhurried
@given(shapes)
def test_counts_are_those_of_the_shape(shape: Shape) -> None:
    plan = build_plan(shape)
    assert len(plan.hosts) == shape.hosts
    assert len(plan.switches) == shape.switches
    assert len(plan.links) == shape.links
    assert sum(link.is_host_link for link in plan.links) == shape.hosts * shape.planes


def test_quickstart_counts() -> None:
    assert (len(QUICKSTART.hosts), len(QUICKSTART.switches), len(QUICKSTART.links)) == (8, 24, 64)


@unhurried
@given(st.builds(Shape, st.integers(1, 2), every, st.just(RATE), st.just(RTT)))
def test_routes_are_as_many_as_reckoned(shape: Shape) -> None:
    plan = build_plan(shape)
    assert sum(1 for node in plan.node_names for _ in routes_of(plan, node)) == count_routes(shape)


@unhurried
@given(shapes)
def test_every_name_and_number_is_given_once(shape: Shape) -> None:
    plan = build_plan(shape)
    interfaces = [end for link in plan.links for end in (link.near, link.far)]
    for given_out in (
        list(plan.node_names),
        [link.name for link in plan.links],
        ends(plan),
        [end.ifindex for end in interfaces],
        [end.mac for end in interfaces],
        [end.link_local for end in interfaces],
        [switch.usid for switch in plan.switches],
        [host.address for host in plan.hosts],
    ):
        assert len(set(given_out)) == len(given_out)


@unhurried
@given(shapes)
def test_interface_names_and_addresses_are_ones_the_kernel_takes(shape: Shape) -> None:
    for link in build_plan(shape).links:
        for end in (link.near, link.far):
            assert 0 < len(end.name) <= IFNAMSIZ
            assert 0 < end.ifindex < 1 << 31
            assert IPv6Address(end.link_local).is_link_local
            first = int(end.mac[:2], 16)
            assert first & 1 == 0, "a unicast address"
            assert first & 2, "a locally administered address"
            assert len(end.mac) == 17


@unhurried
@given(shapes)
def test_names_can_be_read_back(shape: Shape) -> None:
    plan = build_plan(shape)
    for host in plan.hosts:
        assert names.parse_host(host.name) == host.index
        assert names.parse_switch(host.name) is None
        assert 0xC000 <= host.udp_port < 0xFF00
    for switch in plan.switches:
        assert names.parse_switch(switch.name) == (switch.plane, switch.tier, switch.index)
        assert names.parse_host(switch.name) is None
    for link in plan.links:
        assert link.name == f"{link.near.node}:{link.far.node}"


@pytest.mark.parametrize(
    "name", ["h01", "h", "H1", "p0-t4-1", "p0-t1", "p00-t1-1", "h1 ", "p0-t1-01", "h1\n", "h\uff11", "p\uff11-t1-1"]
)
def test_what_is_no_name_is_not_read(name: str) -> None:
    assert names.parse_host(name) is None
    assert names.parse_switch(name) is None


@unhurried
@given(shapes)
def test_links_and_ports_tell_the_same(shape: Shape) -> None:
    plan = build_plan(shape)
    for node in (plan.node_names[0], plan.node_names[-1]):
        assert {own.name for own, _ in plan.ports[node]} == {
            end.name for link in plan.links_of(node) for end in (link.near, link.far) if end.node == node
        }
        assert all(plan.link_by_name[link.name] is link for link in plan.links_of(node))


def test_links_of_an_unknown_node_is_an_error() -> None:
    with pytest.raises(KeyError):
        QUICKSTART.links_of("p9-t0-0")


@unhurried
@given(small_shapes)
def test_no_node_has_two_routes_for_one_address(shape: Shape) -> None:
    plan = build_plan(shape)
    for node in plan.node_names:
        prefixes = [route.prefix for route in routes_of(plan, node)]
        assert len(set(prefixes)) == len(prefixes)


@unhurried
@given(small_shapes)
def test_routes_use_interfaces_the_node_has(shape: Shape) -> None:
    plan = build_plan(shape)
    for node in plan.node_names:
        own = {port.name for port, _ in plan.ports[node]}
        for route in routes_of(plan, node):
            assert (route.device in own) == (route.kind is RouteKind.VIA)


def pairs(plan: Plan) -> list[tuple[Host, Host]]:
    return [(src, dst) for src in plan.hosts for dst in plan.hosts if src is not dst]


@unhurried
@given(small_shapes)
def test_paths_are_planes_times_uplinks(shape: Shape) -> None:
    plan = build_plan(shape)
    for src, dst in pairs(plan):
        found = [(path.id.plane, path.id.uplink) for path in plan.paths(src, dst)]
        uplinks = shape.family.tiers[1] if src.group != dst.group else 1
        assert found == [(plane, uplink) for plane in range(shape.planes) for uplink in range(uplinks)]


@unhurried
@given(small_shapes)
def test_a_host_has_no_path_to_itself(shape: Shape) -> None:
    plan = build_plan(shape)
    host = plan.hosts[-1]
    assert plan.paths(host, host) == []
    with pytest.raises(ValueError, match="no path to itself"):
        plan.links_on_path(host, host, PathId(0, 0))


@pytest.mark.parametrize("sizes", [(1, 256, 256, 1), (16, 64, 64, 4), (16, 16, 16, 256)])
@pytest.mark.nightly(keep=1)
def test_big_shapes_are_planned_in_seconds(sizes: tuple[int, int, int, int]) -> None:
    begin = time.process_time()
    plan = build_plan(shape_of(sizes))
    assert len(plan.ports[plan.switches[-1].name]) == len(plan.links_of(plan.switches[-1].name))
    assert time.process_time() - begin < 10
    assert IPv6Address(plan.links[-1].far.link_local).is_link_local
