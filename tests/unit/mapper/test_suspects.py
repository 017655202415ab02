"""What packets cross, and what they cannot tell apart, against brute force."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from mrc_testbed.testbed.mapper.probing import probe_routes
from mrc_testbed.testbed.mapper.suspects import SuspectKind, SuspectTable, alike, in_common
from mrc_testbed.topos.usid import PathId
from tests.mapping.simulation import plan_of


def test_a_way_has_its_nodes_and_links_in_order() -> None:
    plan = plan_of(2, 2, 3, 2)
    table = SuspectTable(plan)
    names = {next(iter(one.elements)): str(one) for one in table.all if len(one.elements) == 1}
    src, dst = plan.hosts[0], plan.hosts[3]
    way = table.crossed("h0", plan.links_on_path(src, dst, PathId(1, 2)))
    assert [names[element] for element in way] == [
        *("h0", "h0:p1-t0-0 up", "p1-t0-0", "p1-t0-0:p1-t1-2 up", "p1-t1-2"),
        *("p1-t0-1:p1-t1-2 down", "p1-t0-1", "h3:p1-t0-1 down", "h3"),
    ]
    with pytest.raises(ValueError, match="does not begin at h0"):
        table.crossed("h0", ["p1-t0-0:p1-t1-2"])


def test_everything_that_can_break_is_there_once() -> None:
    plan = plan_of(2, 2, 3, 2)
    table = SuspectTable(plan)
    assert table.components == len(plan.node_names) + len(plan.links)
    assert len(table.all) == len(plan.node_names) + 3 * len(plan.links)
    assert table.named("p0-t1-0").kind is SuspectKind.SWITCH
    assert table.links_of(table.named("p0-t1-0")) == {"p0-t0-0:p0-t1-0", "p0-t0-1:p0-t1-0"}
    assert table.links_of(table.named("h1:p1-t0-0", "up")) == {"h1:p1-t0-0"}
    assert table.links_of(table.named("h1")) == {"h1:p0-t0-0", "h1:p1-t0-0"}


def test_what_is_alike_is_what_the_same_probes_cross() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        plan = plan_of(rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3), rng.randint(2, 3))
        table = SuspectTable(plan)
        routes = [one.crosses for each in probe_routes(plan, table, rng.randint(1, 3)).values() for one in each]
        routes = [route for route in routes if rng.random() < 0.7]
        classes = alike(table, routes)
        crossed = {one: frozenset(n for n, way in enumerate(routes) if one.elements & set(way)) for one in table.all}
        for one, other in combinations(table.all, 2):
            same = bool(crossed[one]) and crossed[one] == crossed[other] and one.name != other.name
            assert same == (any({one, other} <= each for each in classes) and one.name != other.name), (one, other)


@pytest.mark.parametrize(("shape", "words"), [((2, 2, 2, 1), {"p0-t0-0", "h0:p0-t0-0"}), ((1, 1, 1, 2), {"p0-t1-0"})])
def test_small_fabrics_leave_things_alike(shape: tuple[int, int, int, int], words: set[str]) -> None:
    """One host below each T0: it is as its ports. One T0: a T1 is as its link."""
    plan = plan_of(*shape)
    table = SuspectTable(plan)
    routes = [one.crosses for each in probe_routes(plan, table, 2).values() for one in each]
    assert any(words <= {one.name for one in each} for each in alike(table, routes))


@pytest.mark.parametrize("owners", [1, 2, 3, 9])
def test_each_link_is_probed_by_its_owners(owners: int) -> None:
    plan = plan_of(2, 2, 4, 3)
    table = SuspectTable(plan)
    routes = [one for each in probe_routes(plan, table, owners).values() for one in each]
    for link in plan.links:
        probing = {one.host for one in routes if one.links[-1] == link.name}
        assert len(probing) == (1 if link.is_host_link else min(owners, 3))
    assert len({(one.host, one.links) for one in routes}) == len(routes)
    busiest = max(len(each) for each in probe_routes(plan, table, owners).values())
    assert busiest <= 2 + 2 * -(-4 * min(owners, 3) // 3)


def test_hosts_without_an_agent_probe_nothing() -> None:
    plan = plan_of(1, 2, 2, 2)
    found = probe_routes(plan, SuspectTable(plan), 2, hosts=["h0", "h2"])
    assert set(found) == {"h0", "h2"}
    assert {one.links[-1] for one in found["h0"]} == {"h0:p0-t0-0", "p0-t0-0:p0-t1-0", "p0-t0-0:p0-t1-1"}


def test_ways_have_in_common_what_all_of_them_cross() -> None:
    plan = plan_of(1, 2, 2, 1)
    table = SuspectTable(plan)
    src, dst = plan.hosts
    ways = [table.crossed("h0", plan.links_on_path(src, dst, path.id)) for path in plan.paths(src, dst)]
    shared = in_common(ways)
    assert len(shared) == 6
    assert shared[0] == ways[0][0]
    assert all(set(shared) <= set(way) for way in ways)
