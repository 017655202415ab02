"""Targets in fabrics of three tiers and of rails: by pair of tiers, by switch, by number, by rail; and denied paths."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.faults.rule_actions import LosePacketsOfEv
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario, load_scenario_text
from mrc_testbed.testbed.scenario.faults.classes import members
from mrc_testbed.testbed.scenario.faults.names import Target, links_of_target
from mrc_testbed.testbed.scenario.faults.occurrence import LinkEnd
from mrc_testbed.testbed.scenario.faults.ways import entrances
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.fold import fold
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape
from tests.small_families import every
from tests.unit.scenario.test_mistakes import mistakes
from tests.unit.virtual.virtual_stage import Stage

CLOS3 = "{clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}"
"""h0 to h3 are in one pod, h4 to h7 in the other; T1s 0 and 1, 2 and 3; T2s 0 and 1 are the column of T1s 0 and 2."""
RAIL = "{rail: {rails: 2, nodes: 3, spine: 2}}"
HEAD = """\
name: s
fabric: {{family: {family}, planes: 2}}
workload: [{{train: {{hosts: {hosts}, steps: 2, compute: 500ms, allreduce: 1MiB}}}}]
"""


def text(*faults: str, family: str = CLOS3, hosts: str = "all", more: str = "") -> str:
    lines = "".join(f"  - {{{line}}}\n" for line in faults)
    return HEAD.format(family=family, hosts=hosts) + (f"faults:\n{lines}" if faults else "") + more


def plan_of(family: Clos3 | Rail) -> Plan:
    return build_plan(Shape(2, family, 25_000_000, 20_000_000))


C3 = plan_of(Clos3(2, 2, 2, 4, 2))


def occurrence(fault: str, family: str = CLOS3) -> Occurrence:
    (found,) = load_scenario_text(text(fault, family=family)).occurrences
    return found


@pytest.mark.parametrize(
    ("kind", "written", "names"),
    [
        ("link-down", "T1-T2 links", [link.name for link in C3.links if "t2" in link.name]),
        ("link-down", "T0-T1 links", [link.name for link in C3.links if "t0" in link.name and "t1" in link.name]),
        ("link-down", "'*:p0-t2-3'", ["p0-t1-1:p0-t2-3", "p0-t1-3:p0-t2-3"]),
        ("switch-silent", "T2 switches", [f"p{plane}-t2-{number}" for plane in range(2) for number in range(4)]),
        ("deny", "'p*/u3'", ["p0/u3", "p1/u3"]),
        ("deny", "p0-t*-1", ["p0-t1-1", "p0-t2-1"]),
        ("deny", "'p[1]'", ["p1"]),
    ],
)
def test_classes_and_patterns_of_three_tiers(kind: str, written: str, names: list[str]) -> None:
    hosts = ", hosts: [h0]" if kind == "deny" else ""
    assert [*occurrence(f"at: 1s, {kind}: {written}, for: 300ms{hosts}").targets] == names


def test_a_rail_is_its_switches_or_their_links() -> None:
    assert occurrence("at: 1s, switch-reboot: rail 1, boot: 300ms", RAIL).targets == ("p0-t0-1", "p1-t0-1")
    links = occurrence("at: 1s, link-down: rail 1, for: 300ms", RAIL).targets
    assert set(links) == {
        *(f"h{host}:p{plane}-t0-1" for plane in range(2) for host in (1, 3, 5)),
        *(f"p{plane}-t0-1:p{plane}-t1-{spine}" for plane in range(2) for spine in range(2)),
    }
    ports = occurrence("at: 1s, port-flap: any 1 of rail 0, period: 500ms, count: 1", RAIL).targets
    assert set(ports) <= {f"h{host}:p{plane}-t0-0" for plane in range(2) for host in (0, 2, 4)}
    segments = plan_of(Rail(2, 4, 2, segments=2))
    assert members("rail 1", Target.SWITCH, segments) == [f"p{plane}-t0-{t0}" for plane in range(2) for t0 in (1, 3)]


@pytest.mark.parametrize(
    ("family", "fault", "said"),
    [
        (RAIL, "link-down: T1-T2 links, for: 1s", "5:25: faults.0.link-down: this fabric has no T1-T2 links"),
        (RAIL, "switch-reboot: rail 2, boot: 1s", "faults.0.switch-reboot: this fabric has no rail 2"),
        (CLOS3, "switch-reboot: rail 0, boot: 1s", "faults.0.switch-reboot: this fabric has no rail 0"),
        (RAIL, "plane-loss: rail 0, loss: 1%, for: 1s", "rail 0 are not allowed here; plane-loss takes planes"),
        (CLOS3, "switch-reboot: p0-t2-9, boot: 1s", "there is no switch 'p0-t2-9'; did you mean 'p0-t2-"),
        (CLOS3, "transceiver-flap: p0-t2-1, period: 1s, count: 1", "p0-t2-1 is a T2; transceiver-flap needs a T0"),
        (CLOS3, "deny: p0/u4, for: 1s", "faults.0.deny: no pair of hosts has more than 4 paths in a plane, u0..u3"),
        (CLOS3, "deny: p2/u1, for: 1s", "faults.0.deny: there is no plane 2; there are p0..p1"),
        (CLOS3, "deny: p0-t0-1, for: 1s", "p0-t0-1 is a T0; deny a whole plane such as p1, the paths over a switch"),
        (CLOS3, "deny: p0-t3-1, for: 1s", "there is no switch 'p0-t3-1'; did you mean 'p0-t"),
        (CLOS3, "ev-loss: p0/u3, from: h0, to: h2, loss: 1%, for: 1s", "no path from h0 to h2 leads over p0/u3"),
        (CLOS3, "ev-loss: p0-t1-2, from: h0, to: h2, loss: 1%, for: 1s", "no path from h0 to h2 leads over p0-t1-2"),
        (
            CLOS3,
            "ev-loss: p0-t0-2, from: h0, loss: 1%, for: 1s",
            "ev-loss needs an EV by its plane and number, such as p0/u1, or a switch",
        ),
        (CLOS3, "ev-loss: p0, from: h0, loss: 1%, for: 1s", "p0 is no uplink; ev-loss needs an EV"),
    ],
)
def test_a_target_that_the_family_does_not_have_has_its_place_and_a_fix(family: str, fault: str, said: str) -> None:
    (line,) = mistakes(text(f"at: 1s, {fault}", family=family))
    assert said in line


def test_where_switches_choose_no_ev_has_a_number() -> None:
    fault = "at: 1s, ev-loss: {}, from: h0, loss: 1%, for: 1s"
    hashed = {"more": "transport: roce\n"}
    (line,) = mistakes(text(fault.format("p0/u2"), **hashed))
    assert "switches choose the path here, and no packet says its number; name a switch, such as p1-t2-3" in line
    scenario = load_scenario_text(text(fault.format("p0-t2-3"), **hashed))
    assert [place.link for place in scenario.occurrences[0].places] == ["p0-t1-1:p0-t2-3"]


@pytest.mark.parametrize(
    ("name", "ends", "places"),
    [
        ("p1/u2", ("h0", ""), [("p1-t1-1:p1-t2-2", "far")]),
        ("p1/u2", ("h0", "h4"), [("p1-t1-1:p1-t2-2", "far")]),
        ("p1/u1", ("h0", "h2"), [("p1-t0-0:p1-t1-1", "far")]),
        ("p1/u1", ("h0", ""), [("p1-t0-1:p1-t1-1", "near"), ("p1-t1-0:p1-t2-1", "far")]),
        ("p0-t1-1", ("h0", ""), [("p0-t0-0:p0-t1-1", "far")]),
        ("p0-t1-3", ("h0", ""), [("p0-t1-3:p0-t2-2", "near"), ("p0-t1-3:p0-t2-3", "near")]),
        ("p0-t2-3", ("h7", ""), [("p0-t1-3:p0-t2-3", "far")]),
        ("p0-t2-3", ("h0", "h2"), []),
        ("p0-t0-1", ("h0", ""), []),
    ],
)
def test_evs_lose_packets_where_no_others_of_the_sender_pass(
    name: str, ends: tuple[str, str], places: list[tuple[str, str]]
) -> None:
    """Number 1 of h0 is over T1-1 in its own pod, and over T2-1, and so T1-0, to the other one."""
    assert entrances(name, *ends, C3) == tuple(LinkEnd(*cast(Any, place)) for place in places)


@given(every, st.data())
def test_a_rule_meets_all_packets_of_its_ev_once_and_no_others(family: object, data: st.DataObject) -> None:
    plan = build_plan(Shape(1, family, 25_000_000, 20_000_000))  # type: ignore[arg-type]
    sender = data.draw(st.sampled_from(plan.hosts))
    upper = [switch.name for switch in plan.switches if switch.tier]
    name = data.draw(st.sampled_from([*upper, *(f"p0/u{number}" for number in range(3))]))
    one = Stage(plan.shape)
    system = TargetSystem(one.fabric, lambda *_: None)
    asked = replace(occurrence("at: 1s, ev-loss: p0-t2-3, from: h0, loss: 100%, for: 300ms"), targets=(name,))
    asked = replace(asked, parameters=replace(asked.parameters, sender=sender.name))
    LosePacketsOfEv().inject(system, asked)
    meant = set()
    for source in plan.hosts:
        for target in plan.hosts:
            for number, path in enumerate(plan.paths(source, target)):
                one.send(
                    bytes([0xC6, source.index, target.index, number]) + bytes(96), source.name, target.name, number
                )
                over = any(f"p0-{place}" == name for place in path.way)
                if source == sender and (over or (name == f"p0/u{number}" and len(path.way) > 1)):
                    meant.add((source.index, target.index, number))
    one.run()
    arrived = {tuple(got.data[1:4]) for found in one.got.values() for got in found}
    everything = {
        (a.index, b.index, number) for a in plan.hosts for b in plan.hosts for number in range(len(plan.paths(a, b)))
    }
    assert everything - arrived == meant
    assert sum(one.fabric.remove_rule(handle) for handle in system.rules.get(asked.key, [])) == len(meant)


def test_links_of_paths_are_those_that_they_cross() -> None:
    links = links_of_target("p1/u0", Target.PATH, C3)
    assert set(links) == {
        *(f"p1-t0-{t0}:p1-t1-{2 * (t0 // 2)}" for t0 in range(4)),
        *(f"p1-t1-{t1}:p1-t2-0" for t1 in (0, 2)),
    }


def test_a_name_by_number_folds_as_a_plane_does() -> None:
    assert [fold(name) for name in ("p3/u2", "p3", "p3-t2-1")] == ["p0/u2", "p0", "p0-t2-1"]


def test_denied_paths_leave_every_pair_one_and_are_denied_once() -> None:
    assert load_scenario_text(text(more="endpoint: {denylist: [p1, p0-t1-1]}\n"))
    (line,) = mistakes(text(more="endpoint: {denylist: [p1, p0-t1-1, p0-t1-0]}\n"))
    assert "leaves no path from h0 to h3; keep a plane or a path of one" in line
    (line,) = mistakes(text(more="endpoint: {denylist: [p1, p0-t2-0, p0-t2-1, p0-t2-2, p0-t2-3]}\n"))
    assert "leaves no path from h0 to h" in line
    (line,) = mistakes(text(more="endpoint: {denylist: [p0-t1-0, p0-t2-1]}\n"))
    assert "endpoint.denylist.1: p0-t2-1 is already denied by endpoint.denylist.0 (p0-t1-0)" in line
    (line,) = mistakes(text(more="endpoint: {denylist: [p0-t2-1, p0/u1]}\n"))
    assert "p0/u1 is already denied by" in line, "between pods it is the path over that T2"
    assert load_scenario_text(text(more="endpoint: {denylist: [p0-t1-0, p0-t2-2]}\n"))
    assert load_scenario_text(
        text(more="endpoint: {denylist: [{path: p0-t2-1, hosts: [h0]}, {path: p0/u1, hosts: [h4]}]}\n")
    )


def test_a_denied_switch_that_no_path_of_the_workload_leads_over_is_refused() -> None:
    near = "[h0, h1, h2, h3]"
    (line,) = mistakes(text(hosts=near, more="endpoint: {denylist: [p0-t2-1]}\n"))
    assert "endpoint.denylist.0: no path of h0, h1, h2, h3 leads over p0-t2-1" in line
    assert load_scenario_text(text(hosts=near, more="endpoint: {denylist: [p0-t1-1]}\n"))


MESH = """\
name: s
plugins: [{plugin}]
fabric: {{planes: 2, family: {{mesh: {{t0s: 4, hosts_per_t0: 1}}}}}}
workload: [{{sendrecv: {{size: 64KiB, iterations: 3}}}}]
"""


def test_in_a_mesh_of_a_plugin_evs_have_numbers_alone(tmp_path: Path) -> None:
    """Way 0 is direct, way 1 of h0 to h3 leads over T0 1."""
    file, plugin = tmp_path / "s.yaml", Path(__file__).parents[3] / "docs/examples/mesh.py"

    def load(more: str) -> Scenario:
        file.write_text(MESH.format(plugin=plugin) + more, encoding="utf-8")
        return load_scenario(file)

    ev = "faults: [{{at: 50ms, ev-loss: {}, from: h0, to: h3, loss: 1%, for: 10ms}}]\n"
    (found,) = load(ev.format("any 2 of uplinks")).occurrences
    assert all("/u" in name for name in found.targets)
    (found,) = load(ev.format("p1/u1")).occurrences
    assert found.places == (LinkEnd("p1-t0-0:p1-t0-1", "far"),)
    assert load("endpoint: {denylist: [p0, p1/u0]}\n")
    for more, said in (
        (ev.format("p0-t0-1"), "p0-t0-1 is no uplink; ev-loss needs an EV by its plane and number, such as p0/u1"),
        (ev.format("p0/u3"), "no pair of hosts has more than 3 paths in a plane, u0..u2"),
        ("transport: roce\n" + ev.format("p0/u1"), "no packet says its number; use link-loss"),
        ("faults: [{at: 50ms, link-down: T0-T1 links, for: 9ms}]\n", "this fabric has no T0-T1 links"),
    ):
        with pytest.raises(ScenarioError, match=re.escape(said)):
            load(more)
