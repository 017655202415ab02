from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from fakes import FakeFabric

from testbed.errors import FabricError
from testbed.fabric.fabric import Fabric
from testbed.faults.inject import KINDS, Injector
from testbed.faults.schedule import Action, FaultStep, fault_schedule, touched_nodes
from testbed.faults.site import Site
from testbed.scenario import load_scenario_text
from testbed.scenario.faults import KINDS as DECLARED
from topos.plan import Plan, build_plan
from topos.shape import Shape

PLAN = build_plan(Shape(2, 2, 2, 2, 25_000_000, 20_000_000))
HEAD = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
faults:
"""
INJECT, HEAL = Action.INJECT, Action.HEAL
FLAPPING = "p0-t0-0:p0-t1-1"
UNDER_T1 = ("p1-t0-0:p1-t1-0", "p1-t0-1:p1-t1-0")


def schedule(*faults: str) -> list[FaultStep]:
    scenario = load_scenario_text(HEAD + "".join(f"  - {fault}\n" for fault in faults))
    return fault_schedule(scenario, PLAN)


def step(name: str, kind: str, *targets: str, action: Action = INJECT, links: tuple[str, ...] = ()) -> FaultStep:
    return FaultStep(0, action, name, kind, targets, 0, links or targets)


def injector(plan: Plan = PLAN) -> tuple[Injector, FakeFabric]:
    fabric = FakeFabric(plan)
    return Injector(Site(cast(Fabric, fabric), fabric.tell)), fabric


def when(steps: list[FaultStep]) -> list[tuple[Any, ...]]:
    return [(each.at_ns // 1_000_000, each.action, each.fault, each.cycle) for each in steps]


def test_the_schedule_is_in_order_of_time_whatever_the_file_says() -> None:
    steps = schedule(
        "{at: 5s, switch-reboot: p1-t1-0, boot: 1s, name: late}",
        f"{{at: 2s, link-down: [{FLAPPING}], for: 9s, name: early}}",
    )
    assert when(steps) == [
        (2000, INJECT, "early", 0),
        (5000, INJECT, "late", 0),
        (6000, HEAL, "late", 0),
        (11000, HEAL, "early", 0),
    ]


def test_equal_times_keep_the_order_of_the_file() -> None:
    steps = schedule(
        f"{{at: 2s, link-down: [{FLAPPING}], for: 1s, name: zz}}",
        "{at: 2s, switch-reboot: p1-t1-0, boot: 1s, name: aa}",
    )
    assert when(steps) == [
        (2000, INJECT, "zz", 0),
        (2000, INJECT, "aa", 0),
        (3000, HEAL, "zz", 0),
        (3000, HEAL, "aa", 0),
    ]


def test_every_cycle_of_a_flap_goes_down_and_up() -> None:
    steps = schedule(f"{{at: 1s, link-flap: {FLAPPING}, period: 2s, count: 3, duty: 0.25, name: flap}}")
    assert when(steps) == [
        (1000, INJECT, "flap", 0),
        (1500, HEAL, "flap", 0),
        (3000, INJECT, "flap", 1),
        (3500, HEAL, "flap", 1),
        (5000, INJECT, "flap", 2),
        (5500, HEAL, "flap", 2),
    ]


def test_a_reboot_breaks_every_link_of_the_switch() -> None:
    first = schedule("{at: 1s, switch-reboot: p1-t1-0, boot: 1s}")[0]
    assert first.targets == ("p1-t1-0",)
    assert first.links == UNDER_T1
    below = schedule("{at: 1s, switch-reboot: p0-t0-1, boot: 1s}")[0]
    assert below.links == ("h2:p0-t0-1", "h3:p0-t0-1", "p0-t0-1:p0-t1-0", "p0-t0-1:p0-t1-1")


def test_a_history_line_names_targets_and_links() -> None:
    first = schedule("{at: 1s, switch-reboot: [p1-t1-0], boot: 1s, name: reboot}")[0]
    assert first.as_record() == {
        "op": "inject",
        "fault": "reboot",
        "kind": "switch-reboot",
        "target": "p1-t1-0",
        "cycle": 0,
        "links": list(UNDER_T1),
    }
    assert first.healed().as_record() == {**first.as_record(), "op": "heal"}


def test_touched_nodes_are_both_ends_of_every_broken_link_once() -> None:
    steps = schedule(
        f"{{at: 1s, link-flap: {FLAPPING}, period: 2s, count: 2}}", "{at: 1s, switch-reboot: p1-t1-0, boot: 1s}"
    )
    assert sorted(touched_nodes(steps, PLAN)) == ["p0-t0-0", "p0-t1-1", "p1-t0-0", "p1-t0-1", "p1-t1-0"]


def test_every_kind_that_can_be_declared_can_be_done() -> None:
    assert KINDS.keys() == DECLARED.keys()


@pytest.mark.parametrize("kind", ["link-down", "link-flap"])
def test_a_link_fault_cuts_and_plugs_every_target(kind: str) -> None:
    acts, fabric = injector()
    broken = step("cut", kind, *UNDER_T1)
    acts.do(broken)
    assert fabric.calls == [("link_down", link) for link in UNDER_T1]
    fabric.calls.clear()
    acts.do(broken.healed())
    assert fabric.calls == [("link_up", link) for link in UNDER_T1]


def test_a_reboot_switches_off_and_on() -> None:
    acts, fabric = injector()
    broken = step("reboot", "switch-reboot", "p1-t1-0", "p0-t1-0", links=UNDER_T1)
    acts.do(broken)
    acts.do(broken.healed())
    assert fabric.calls == [
        ("switch_off", "p1-t1-0"),
        ("switch_off", "p0-t1-0"),
        ("switch_on", "p1-t1-0"),
        ("switch_on", "p0-t1-0"),
    ]


def test_a_switch_that_keeps_routes_did_not_reboot() -> None:
    acts, fabric = injector()
    fabric.routes_left = 3
    with pytest.raises(FabricError, match="p1-t1-0: switch off: 3 routes of its table are still there"):
        acts.do(step("reboot", "switch-reboot", "p1-t1-0", links=UNDER_T1))


def test_what_is_broken_is_known_until_it_is_healed() -> None:
    acts, _ = injector()
    flap, reboot = step("flap", "link-flap", FLAPPING), step("reboot", "switch-reboot", "p1-t1-0", links=UNDER_T1)
    acts.do(flap)
    acts.do(reboot)
    assert acts.broken == {"flap": flap, "reboot": reboot}
    acts.do(flap.healed())
    assert acts.broken == {"reboot": reboot}


def test_the_next_cycle_counts_as_broken_last() -> None:
    acts, _ = injector()
    flap, reboot = step("flap", "link-flap", FLAPPING), step("reboot", "switch-reboot", "p1-t1-0", links=UNDER_T1)
    for each in (flap, reboot, flap.healed(), replace(flap, cycle=1)):
        acts.do(each)
    assert list(acts.broken) == ["reboot", "flap"]


def test_a_fault_that_broke_half_way_is_still_to_be_healed() -> None:
    acts, fabric = injector()
    fabric.refuses = {("link_down", UNDER_T1[1])}
    broken = step("cut", "link-down", *UNDER_T1)
    with pytest.raises(FabricError):
        acts.do(broken)
    assert acts.broken == {"cut": broken}


def test_a_heal_that_failed_is_still_to_be_done() -> None:
    acts, fabric = injector()
    fabric.refuses = {("link_up", FLAPPING)}
    broken = step("cut", "link-down", FLAPPING)
    acts.do(broken)
    with pytest.raises(FabricError):
        acts.do(broken.healed())
    assert acts.broken == {"cut": broken}


def test_read_back_compares_both_ends_of_what_was_healed() -> None:
    acts, fabric = injector()
    broken = step("cut", "link-down", FLAPPING)
    acts.do(broken)
    acts.do(broken.healed())
    acts.read_back(broken.healed())
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-1")


def test_read_back_leaves_out_nodes_that_another_fault_still_breaks() -> None:
    acts, fabric = injector()
    cut = step("cut", "link-down", FLAPPING)
    beside = step("beside", "link-down", "p0-t0-0:p0-t1-0")
    elsewhere = step("elsewhere", "switch-reboot", "p1-t1-0", links=UNDER_T1)
    for each in (cut, beside, elsewhere, cut.healed()):
        acts.do(each)
    acts.read_back(cut.healed())
    assert fabric.calls[-1] == ("verify", "p0-t1-1")
    acts.do(beside.healed())
    acts.read_back(beside.healed())
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-0")


def test_denying_tells_the_endpoints_and_leaves_the_fabric_alone() -> None:
    acts, fabric = injector()
    (denied, allowed) = schedule("{at: 1s, deny: [p0-t1-1, p1], for: 1s, hosts: [h0, h3], name: controller}")
    acts.do(denied)
    assert list(acts.broken) == ["controller"], "what is denied must be allowed again"
    acts.do(allowed)
    assert acts.broken == {}
    assert fabric.calls == [
        ("deny", "p0-t1-1", "p1", ("h0", "h3")),
        ("allow", "p0-t1-1", "p1", ("h0", "h3")),
    ]
    assert denied.links == ()
    assert denied.as_record()["hosts"] == ["h0", "h3"]
    assert denied.as_record()["links"] == []


def test_only_the_first_fall_of_a_fault_is_cold() -> None:
    steps = schedule(f"{{at: cold-start, link-flap: {FLAPPING}, period: 2s, count: 2}}")
    assert [(each.at_ns // 1_000_000, each.action, each.cold) for each in steps] == [
        (0, INJECT, True),
        (1000, HEAL, False),
        (2000, INJECT, False),
        (3000, HEAL, False),
    ]
    assert not steps[0].healed().cold
    assert not any(each.cold for each in schedule(f"{{at: 0s, link-down: {FLAPPING}, for: 1s}}"))
