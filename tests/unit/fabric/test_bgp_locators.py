"""BGP below MRC: which routes stay written and which are learned, with one autonomous system for all T1 or one each."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.fabric.bgp.config import bgpd_text
from mrc_testbed.testbed.fabric.bgp.learned import learned_routes, possible_routes
from mrc_testbed.testbed.fabric.commands import link_lines, node_lines
from mrc_testbed.testbed.report.transport_words import routing_words, software_timers
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from mrc_testbed.testbed.switching.ecmp import switch_settings
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.topos import names, usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.render_table import table
from mrc_testbed.topos.routes import Carries, NextHop, Route, RouteKind, Routing
from mrc_testbed.topos.tables import routes_of
from tests.unit.scenario.test_mistakes import mistakes
from tests.unit.scenario.test_transport import text

SHAPE = clos2_shape(1, 2, 3, 1, 25_000_000, 0)
STATIC = build_plan(SHAPE)
HOSTS = build_plan(SHAPE, Routing.BGP, by_usid=True)
LOCATORS = build_plan(SHAPE, Routing.BGP, by_usid=True, carries=Carries.LOCATORS)
OPTIONS = FabricOptions("dummy", "none", "port program")
EACH = BgpOptions(t1_as="each")
FAR = "p0-t0-1:p0-t1-2"


def held(plan: Plan, node: str, *kinds: RouteKind) -> set[str]:
    return {route.prefix for route in routes_of(plan, node) if route.kind in kinds}


def locator(plan: Plan, switch: str) -> str:
    return usid.locator(plan.switch_by_name[switch].usid)


def ways(plan: Plan, node: str, to: str, bgp: BgpOptions, *lost: str) -> list[str]:
    """Neighbours by which a switch reaches the uSID of another."""
    found = {route.prefix: route.hops for route in learned_routes(plan, node, bgp, lost)}
    peers = {own.name: peer.node for own, peer in plan.ports[node]}
    return [peers[hop.device] for hop in found.get(locator(plan, to), ())]


def test_beside_static_usids_bgp_carries_plain_addresses() -> None:
    """All that MRC uses is there as it was."""
    for node in STATIC.node_names:
        assert list(routes_of(STATIC, node)) == list(routes_of(HOSTS, node))[: len(list(routes_of(STATIC, node)))]
    assert "fd00:1::1/128" in held(HOSTS, "p0-t0-0", RouteKind.VIA)
    assert "fd00:1::/48" in held(HOSTS, "h0", RouteKind.VIA)
    assert [route.prefix for route in learned_routes(HOSTS, "p0-t0-0", BgpOptions())] == ["fd00:1:0:1::1/128"]
    lines = list(node_lines(HOSTS, "h0", OPTIONS))
    assert {f"addr add {HOSTS.hosts[0].address}/128 dev lo", "addr add fd00:1::1/128 dev lo nodad"} <= set(lines)
    assert any("gso_max_segs 1" in line for line in link_lines(HOSTS, dict.fromkeys(HOSTS.node_names, 1)))


def test_learned_usids_are_not_written_but_for_ends_and_hosts() -> None:
    assert held(LOCATORS, "p0-t1-0", *RouteKind) == {locator(LOCATORS, "p0-t1-0")}
    assert held(LOCATORS, "p0-t0-0", RouteKind.VIA) == {"fcbb:bb00:d000::/48"}
    assert list(routes_of(LOCATORS, "h0")) == list(routes_of(STATIC, "h0"))
    assert not LOCATORS.has_plain_addresses


def test_every_switch_announces_its_own_usid() -> None:
    for name in ("p0-t0-1", "p0-t1-2"):
        told = bgpd_text(LOCATORS, LOCATORS.switch_by_name[name], EACH).splitlines()
        assert f"ipv6 prefix-list ANNOUNCED permit {locator(LOCATORS, name)}" in told
        assert "  redistribute kernel route-map ANNOUNCED" in told
    assert "router bgp 4200004098" in told
    first = LOCATORS.link_by_name["p0-t0-0:p0-t1-2"].near
    assert f" neighbor fd00:2::{first.ifindex:x} remote-as 4200000001" in told


def test_with_one_system_for_all_t1_a_lost_link_leaves_no_way() -> None:
    bgp = BgpOptions()
    assert ways(LOCATORS, "p0-t0-0", "p0-t1-2", bgp) == ["p0-t1-2"]
    assert ways(LOCATORS, "p0-t1-2", "p0-t0-1", bgp) == ["p0-t0-1"]
    assert ways(LOCATORS, "p0-t1-2", "p0-t0-1", bgp, FAR) == []
    assert ways(LOCATORS, "p0-t0-1", "p0-t1-2", bgp, FAR) == []
    assert ways(LOCATORS, "p0-t0-0", "p0-t1-2", bgp, FAR) == ["p0-t1-2"]


def test_with_a_system_each_the_t1_sends_packets_back_down_and_up_again() -> None:
    """T0, T1, T0 again, another T1, the last T0: five switches for three."""
    assert ways(LOCATORS, "p0-t1-2", "p0-t0-1", EACH) == ["p0-t0-1"]
    assert ways(LOCATORS, "p0-t1-2", "p0-t0-1", EACH, FAR) == ["p0-t0-0"]
    assert ways(LOCATORS, "p0-t0-0", "p0-t0-1", EACH, FAR) == ["p0-t1-0", "p0-t1-1"]
    assert ways(LOCATORS, "p0-t0-1", "p0-t1-2", EACH, FAR) == ["p0-t1-0", "p0-t1-1"]


@given(st.integers(2, 4), st.integers(1, 4), st.sampled_from(["one", "each"]), st.data())
@settings(deadline=None)
def test_packets_that_follow_learned_routes_arrive_and_never_go_round(
    groups: int, t1: int, t1_as: str, data: st.DataObject
) -> None:
    """Each step is one nearer; with one system no way has two T1, with one each there is a way wherever a link path
    is."""
    plan = build_plan(clos2_shape(1, groups, t1, 1, 25_000_000, 0), Routing.BGP, by_usid=True, carries=Carries.LOCATORS)
    between = [link.name for link in plan.links if not link.is_host_link]
    lost = data.draw(st.sets(st.sampled_from(between), max_size=len(between)))
    bgp = BgpOptions(t1_as=t1_as)  # type: ignore[arg-type]
    for start in plan.switches:
        assert rows(learned_routes(plan, start.name, bgp, lost)) <= rows(possible_routes(plan, start.name, bgp))
        for end in plan.switches:
            way = [start.name]
            while way[-1] != end.name and (nexts := ways(plan, way[-1], end.name, bgp, *lost)):
                way.append(data.draw(st.sampled_from(nexts)))
            assert len(set(way)) == len(way)
            if len(way) > 1:
                assert way[-1] == end.name
            if t1_as == "one":
                assert sum(plan.switch_by_name[name].tier for name in way) <= 1
            else:
                assert (way[-1] == end.name) == (end.name in reached(plan, start.name, lost))


def rows(routes: Iterable[Route]) -> set[tuple[str, NextHop]]:
    return {(route.prefix, hop) for route in routes for hop in route.hops}


def reached(plan: Plan, start: str, lost: set[str]) -> set[str]:
    found, edge = {start}, [start]
    while edge:
        edge = [
            peer.node
            for node in edge
            for own, peer in plan.ports[node]
            if peer.node in plan.switch_by_name
            and peer.node not in found
            and not {names.link_name(own.node, peer.node), names.link_name(peer.node, own.node)} & lost
        ]
        found.update(edge)
    return found


def test_switches_hash_what_names_the_path() -> None:
    """Outer addresses and flow label. With policy 1 it would be the time that the port program sends along."""
    assert not switch_settings(STATIC, "p0-t0-0", OPTIONS)
    for plan in (HOSTS, LOCATORS):
        assert switch_settings(plan, "p0-t0-0", OPTIONS)["/proc/sys/net/ipv6/fib_multipath_hash_policy"] == 0
        assert not switch_settings(plan, "h0", OPTIONS)


MRC = "routing: bgp\n"
SHORT = ", rtt: 5ms"


def over_bgp(more: str, fabric: str = SHORT) -> Scenario:
    return load_scenario_text(text(MRC + more, fabric))


def test_what_a_scenario_says_reaches_the_plan() -> None:
    plain = over_bgp("seed: 3").plan()
    assert (plain.by_usid, plain.learns, plain.learns_locators) == (True, True, False)
    assert over_bgp("bgp: {carries: locators}").plan().learns_locators
    tcp = load_scenario_text(text("transport: tcp\nrouting: bgp")).plan()
    assert (tcp.by_usid, tcp.has_plain_addresses) == (False, True)


def test_words_say_what_bgp_does_beside_mrc() -> None:
    assert routing_words(over_bgp("seed: 3")) == "SRv6, BGP beside it"
    assert not list(software_timers(over_bgp("seed: 3")))
    detours = over_bgp("bgp: {carries: locators, t1_as: each, bfd: {interval: 300ms}}")
    assert routing_words(detours) == "SRv6, uSIDs by BGP, an AS per T1, BFD 3 x 300 ms"
    assert [timer.ns for timer in software_timers(detours)] == [900_000_000]
    assert "BGP       between T0 and T1 finds the routes to their uSIDs" in table(detours.plan())
    assert "plain addresses of hosts, such as fd00:1::1 of h0" in table(HOSTS)


def test_a_race_that_scale_alone_decides_is_warned_of() -> None:
    """2.5 T against 0.08 s."""
    far = over_bgp("bgp: {carries: locators}", "")
    assert [line for line in scenario_warnings(far) if "2.5 T = 100ms" in line and "write at most 10ms" in line]
    for calm in (over_bgp("bgp: {carries: locators}"), over_bgp("bgp: {carries: hosts}", "")):
        assert not list(scenario_warnings(calm))


@pytest.mark.parametrize(
    ("keys", "place", "keyword"),
    [
        ("routing: bgp\nbgp: {carries: prefixes}", "3:16: bgp.carries", "locators"),
        ("routing: bgp\nbgp: {t1_as: two}", "3:14: bgp.t1_as", "each"),
        ("routing: bgp\nbgp: {carries: locators, routes: racks}", "3:34: bgp.routes", "its own uSID"),
        ("transport: roce\nrouting: bgp\nbgp: {carries: locators}", "4:16: bgp.carries", "`carries: hosts`"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(keys: str, place: str, keyword: str) -> None:
    assert [line for line in mistakes(text(keys)) if place in line and keyword in line]


def test_a_detour_would_answer_for_a_path_that_is_broken_from_the_start() -> None:
    cold = 'at: cold-start, link-down: "p0-t0-1:p0-t1-1", for: 2s'
    each = text(MRC + "bgp: {carries: locators, t1_as: each}", SHORT, cold)
    assert [line for line in mistakes(each) if "faults.0.at" in line and "`bgp.t1_as: one`" in line]
    assert load_scenario_text(text(MRC + "bgp: {carries: locators}", SHORT, cold)).plan().learns_locators


def test_what_bgp_would_carry_is_warned_of_where_there_is_none() -> None:
    work = "workload: [{train: {steps: 1, compute: 1s, allreduce: 1MiB}}]"
    (found,) = scenario_warnings(load_scenario_text(f"name: x\nfabric: {{planes: 1}}\nbgp: {{t1_as: each}}\n{work}\n"))
    assert found == "bgp.t1_as: the routing is srv6, so BGP carries nothing; write `routing: bgp`"
