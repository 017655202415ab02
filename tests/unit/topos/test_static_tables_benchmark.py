"""Static tables as data, at small sizes of every family: every entry is used, and a wrong one is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.static_tables import LostPacketError, StaticTables, measure, sampled, walk_all
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Way
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import RouteKind
from mrc_testbed.topos.shape import Shape

SMALL = (
    clos2_shape(2, 4, 3, 2, 10**8, 0),
    clos2_shape(3, 1, 0, 5, 10**8, 0),
    Shape(2, Clos3(pods=2, t0=2, t1=2, t2=4, hosts_per_t0=2), 10**8, 0),
    Shape(1, Rail(rails=2, nodes=4, spine=2, segments=2), 10**8, 0),
)


def every_path(plan: Plan) -> Iterator[tuple[Host, Host, Way]]:
    return ((src, dst, way) for src in plan.hosts for dst in plan.hosts if src != dst for way in plan.ways(src, dst))


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: f"{shape.planes}-{shape.family.word}-{shape.family.tiers}")
def test_all_paths_arrive_and_use_every_entry(shape: Shape) -> None:
    plan = build_plan(shape)
    tables = StaticTables(plan)
    walks = walk_all(plan, tables, every_path(plan))
    assert walks == sum(len(plan.paths(src, dst)) for src in plan.hosts for dst in plan.hosts)
    assert tables.unused == 0
    for switch in plan.switch_by_name:
        assert len(tables.entries[switch]) == 1 + len(plan.links_of(switch)), "its own uSID and its neighbours'"


def test_what_a_sender_writes_is_what_the_walk_takes() -> None:
    plan = build_plan(SMALL[2])
    tables = StaticTables(plan)
    for path in plan.paths(plan.hosts[0], plan.hosts[-1]):
        assert tables.walk("h0", path.outer) == [
            "h0",
            *plan.switches_on_path(plan.hosts[0], plan.hosts[-1], path.id),
            plan.hosts[-1].name,
        ]


def test_the_sample_uses_every_entry_with_as_many_t1s_and_hosts_as_t0s() -> None:
    found = measure(2, 6)
    assert (found.t0s, found.hosts, found.links) == (12, 36, 2 * (36 + 36))
    assert (found.t0_entries, found.t1_entries) == (13, 7)
    assert found.entries == 12 * 13 + 12 * 7
    assert found.walks == 2 * (6 + 6 * 5 * 2)
    assert found.unused == 0
    assert found.row().startswith("| 12 | 36 | 144 | 13 | 7 | 240 |")


@pytest.fixture
def plan() -> Plan:
    return build_plan(SMALL[0])


def locator(tables: StaticTables, switch: str, to: str) -> int:
    return next(key for key, entry in tables.entries[switch].items() if entry == to)


def test_a_missing_entry_loses_packets(plan: Plan) -> None:
    tables = StaticTables(plan)
    del tables.entries["p1-t1-2"][locator(tables, "p1-t1-2", "p1-t0-3")]
    with pytest.raises(LostPacketError, match="p1-t1-2 has no route to fcbb:bb00:1103:"):
        walk_all(plan, tables, sampled(plan))


def test_an_entry_to_another_neighbour_is_found(plan: Plan) -> None:
    tables = StaticTables(plan)
    up = locator(tables, "p0-t0-1", "p0-t1-0")
    tables.entries["p0-t0-1"][up] = "p0-t1-1"
    with pytest.raises(LostPacketError):
        walk_all(plan, tables, sampled(plan))


def test_a_packet_that_goes_in_circles_is_given_up(plan: Plan) -> None:
    tables = StaticTables(plan)
    own = next(key for key, entry in tables.entries["p0-t1-0"].items() if entry is RouteKind.END)
    tables.entries["p0-t1-0"][own] = "p0-t0-0"
    with pytest.raises(LostPacketError, match="circles"):
        walk_all(plan, tables, sampled(plan))
