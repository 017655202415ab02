"""BGP in planes of three tiers and of rails: autonomous systems as RFC 7938 has them, and the routes learned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.fabric.bgp import watch
from mrc_testbed.testbed.fabric.bgp.learned import learned_routes, possible_routes
from mrc_testbed.testbed.fabric.bgp.systems import autonomous_systems
from mrc_testbed.testbed.fabric.bgp.watch import RouteWatch
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import Carries, Routing
from mrc_testbed.topos.shape import Shape
from tests.small_families import every

PODS = Clos3(pods=3, t0=2, t1=2, t2=4, hosts_per_t0=1)
ONE, EACH = BgpOptions(), BgpOptions(t1_as="each")


def plan_of(family: Family, planes: int = 1, carries: Carries = Carries.HOSTS) -> Plan:
    shape = Shape(planes, family, 25_000_000, 20_000_000)
    return build_plan(shape, Routing.BGP, by_usid=carries is Carries.LOCATORS, carries=carries)


def system_of(numbers: dict[str, int], *names: str) -> set[int]:
    return {numbers[name] for name in names}


def test_each_t0_is_one_system_the_t1s_of_a_pod_are_one_and_all_t2s_of_a_plane() -> None:
    numbers = autonomous_systems(plan_of(PODS, planes=2), ONE)
    assert len(set(numbers.values())) == 2 * (6 + 3 + 1)
    assert len(system_of(numbers, *(f"p0-t2-{number}" for number in range(4)))) == 1
    for pod in range(3):
        assert len(system_of(numbers, f"p0-t1-{2 * pod}", f"p0-t1-{2 * pod + 1}")) == 1
    assert len(set(autonomous_systems(plan_of(PODS, planes=2), EACH).values())) == 2 * (6 + 6 + 4)


def test_two_tiers_have_the_numbers_that_they_always_had() -> None:
    for family in (Clos2(3, 2, 1), Rail(3, 2, 2)):
        numbers = autonomous_systems(plan_of(family), ONE)
        assert [numbers[f"p0-t0-{t0}"] - 4_200_000_000 for t0 in range(3)] == [1, 2, 3]
        assert {numbers[f"p0-t1-{t1}"] for t1 in range(2)} == {4_200_000_000}


def hops(plan: Plan, node: str, bgp: BgpOptions = ONE, lost: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """By prefix, the switches that come next."""
    beside = {own.name: peer.node for own, peer in plan.ports[node]}
    return {route.prefix: [beside[hop.device] for hop in route.hops] for route in learned_routes(plan, node, bgp, lost)}


FAR = "fd00:1:0:2::1/128"
"""h2, in the second pod."""


def test_packets_between_pods_are_spread_over_both_tiers_and_go_down_one_way() -> None:
    plan = plan_of(PODS)
    assert hops(plan, "p0-t0-0")[FAR] == ["p0-t1-0", "p0-t1-1"]
    assert hops(plan, "p0-t1-0")[FAR] == ["p0-t2-0", "p0-t2-1"]
    assert hops(plan, "p0-t2-1")[FAR] == ["p0-t1-2"]
    assert hops(plan, "p0-t1-2")[FAR] == ["p0-t0-2"]
    assert hops(plan, "p0-t1-0")["fd00:1:0:1::1/128"] == ["p0-t0-1"]


def test_a_lost_link_takes_all_ways_over_it_and_leaves_no_detour() -> None:
    plan = plan_of(PODS)
    above = ("p0-t1-2:p0-t2-1",)
    assert hops(plan, "p0-t1-0", ONE, above)[FAR] == ["p0-t2-0"]
    assert FAR not in hops(plan, "p0-t2-1", ONE, above)
    below = ("p0-t0-2:p0-t1-2",)
    assert hops(plan, "p0-t0-0", ONE, below)[FAR] == ["p0-t1-1"], "the whole column of that T1 has no way left"
    assert FAR not in hops(plan, "p0-t1-2", ONE, below)
    assert hops(plan, "p0-t1-2", EACH, below)[FAR] == ["p0-t0-3"], "down, and up again"


@given(every, st.sampled_from(["one", "each"]), st.sampled_from([*Carries]), st.data())
@settings(deadline=None)
def test_packets_that_follow_learned_routes_arrive_and_never_go_round(
    family: Family, t1_as: str, carries: Carries, data: st.DataObject
) -> None:
    """Each step is one nearer. With one system for each pod and tier no way goes up once it has come down."""
    plan = plan_of(family, carries=carries)
    between = [link.name for link in plan.links if not link.is_host_link]
    lost = tuple(data.draw(st.sets(st.sampled_from(between)) if between else st.just(set())))
    bgp = BgpOptions(t1_as=t1_as)  # type: ignore[arg-type]
    tables = {switch.name: hops(plan, switch.name, bgp, lost) for switch in plan.switches}
    for name, table in tables.items():
        possible = {route.prefix: len(route.hops) for route in possible_routes(plan, name, bgp)}
        for prefix, nexts in table.items():
            assert len(nexts) <= possible[prefix]
            way = list(walked(prefix, name, tables, data))
            assert len(set(way)) == len(way)
            assert prefix not in tables[way[-1]], "it ends at who has announced it"
            tiers = [plan.switch_by_name[each].tier for each in way]
            assert t1_as == "each" or valley_free(tiers)


def walked(prefix: str, start: str, tables: dict[str, dict[str, list[str]]], data: st.DataObject) -> Iterator[str]:
    node = start
    yield node
    while nexts := tables[node].get(prefix):
        node = data.draw(st.sampled_from(nexts))
        yield node


def valley_free(tiers: list[int]) -> bool:
    top = tiers.index(max(tiers))
    return tiers[: top + 1] == sorted(tiers[: top + 1]) and tiers[top:] == sorted(tiers[top:], reverse=True)


def test_all_switches_but_the_highest_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_listening", lambda _pid, node: node)

    def watched(family: Family) -> set[int]:
        plan = plan_of(family)
        route_watch = RouteWatch(plan, FabricOptions("dummy", "none"), dict.fromkeys(plan.switch_by_name, 0))
        return {plan.switch_by_name[name].tier for name in route_watch.sockets}

    assert watched(PODS) == {0, 1}
    assert watched(Clos2(2, 2, 1)) == {0}
