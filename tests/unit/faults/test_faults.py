from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.faults.actions import ACTIONS
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.schedule import Action, FaultStep, fault_schedule, heal, inject, touched_nodes
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.rundir.lines import step_fields
from mrc_testbed.testbed.scenario import Occurrence, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan
from tests.unit.fakes import FakeFabric

PLAN = build_plan(clos2_shape(2, 2, 2, 2, 25_000_000, 20_000_000))
HEAD = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
faults:
"""
INJECT, HEAL = Action.INJECT, Action.HEAL
FLAPPING = "p0-t0-0:p0-t1-1"
UNDER_T1 = ("p1-t0-0:p1-t1-0", "p1-t0-1:p1-t1-0")


def schedule(*faults: str) -> list[FaultStep]:
    scenario = load_scenario_text(HEAD + "".join(f"  - {fault}\n" for fault in faults))
    return fault_schedule(scenario.occurrences)


def step(name: str, kind: str, *targets: str, links: tuple[str, ...] = (), number: int = 0) -> FaultStep:
    return inject(Occurrence(name, number, KINDS[kind], targets, 0, 1, links or targets))


def undo(step: FaultStep) -> FaultStep:
    return heal(step.occurrence)


def renamed(step: FaultStep, name: str) -> FaultStep:
    return inject(replace(step.occurrence, fault=name))


def injector(plan: Plan = PLAN) -> tuple[Injector, FakeFabric]:
    fabric = FakeFabric(plan)
    return Injector(TargetSystem(cast(Fabric, fabric), fabric.update_denylists)), fabric


def when(steps: list[FaultStep]) -> list[tuple[Any, ...]]:
    return [(each.at_ns // 1_000_000, each.action, each.occurrence.fault, each.occurrence.number) for each in steps]


def far(link: str) -> tuple[str, str]:
    end = PLAN.link_by_name[link].far
    return end.node, end.name


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


def test_every_occurrence_of_a_flap_goes_down_and_up() -> None:
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
    assert first.occurrence.targets == ("p1-t1-0",)
    assert first.occurrence.links == UNDER_T1
    below = schedule("{at: 1s, switch-reboot: p0-t0-1, boot: 1s}")[0]
    assert below.occurrence.links == ("h2:p0-t0-1", "h3:p0-t0-1", "p0-t0-1:p0-t1-0", "p0-t0-1:p0-t1-1")


def test_a_history_line_names_targets_and_links() -> None:
    first = schedule("{at: 1s, switch-reboot: [p1-t1-0], boot: 1s, name: reboot}")[0]
    assert step_fields(first) == {
        "op": "inject",
        "fault": "reboot",
        "kind": "switch-reboot",
        "target": "p1-t1-0",
        "cycle": 0,
        "links": list(UNDER_T1),
    }
    assert step_fields(undo(first)) == {**step_fields(first), "op": "heal"}


def test_touched_nodes_are_both_ends_of_every_broken_link_once() -> None:
    steps = schedule(
        f"{{at: 1s, link-flap: {FLAPPING}, period: 2s, count: 2}}", "{at: 1s, switch-reboot: p1-t1-0, boot: 1s}"
    )
    assert sorted(touched_nodes([each.occurrence for each in steps], PLAN)) == [
        "p0-t0-0",
        "p0-t1-1",
        "p1-t0-0",
        "p1-t0-1",
        "p1-t1-0",
    ]


def test_every_kind_that_can_be_declared_can_be_done() -> None:
    assert ACTIONS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", ["link-down", "link-flap", "port-flap", "transceiver-flap"])
def test_a_link_fault_cuts_and_plugs_every_target(kind: str) -> None:
    acts, fabric = injector()
    broken = step("cut", kind, *UNDER_T1)
    acts.do(broken)
    assert fabric.calls == [("port_down", *far(link)) for link in UNDER_T1]
    fabric.calls.clear()
    acts.do(undo(broken))
    assert fabric.calls == [("port_up", *far(link)) for link in UNDER_T1]


def test_a_reboot_switches_off_and_on() -> None:
    acts, fabric = injector()
    broken = step("reboot", "switch-reboot", "p1-t1-0", "p0-t1-0", links=UNDER_T1)
    acts.do(broken)
    acts.do(undo(broken))
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
    assert acts.broken == {("flap", 0): flap.occurrence, ("reboot", 0): reboot.occurrence}
    acts.do(undo(flap))
    assert acts.broken == {("reboot", 0): reboot.occurrence}


def test_the_next_occurrence_counts_as_broken_last() -> None:
    acts, _ = injector()
    flap, reboot = step("flap", "link-flap", FLAPPING), step("reboot", "switch-reboot", "p1-t1-0", links=UNDER_T1)
    for each in (flap, reboot, undo(flap), step("flap", "link-flap", FLAPPING, number=1)):
        acts.do(each)
    assert list(acts.broken) == [("reboot", 0), ("flap", 1)]


def test_a_fault_that_broke_half_way_is_still_to_be_healed() -> None:
    acts, fabric = injector()
    fabric.refuses = {("port_down", *far(UNDER_T1[1]))}
    broken = step("cut", "link-down", *UNDER_T1)
    with pytest.raises(FabricError):
        acts.do(broken)
    assert acts.broken == {("cut", 0): broken.occurrence}


def test_a_heal_that_failed_is_still_to_be_done() -> None:
    acts, fabric = injector()
    fabric.refuses = {("port_up", *far(FLAPPING))}
    broken = step("cut", "link-down", FLAPPING)
    acts.do(broken)
    with pytest.raises(FabricError):
        acts.do(undo(broken))
    assert acts.broken == {("cut", 0): broken.occurrence}


def test_read_back_compares_both_ends_of_what_was_healed() -> None:
    acts, fabric = injector()
    broken = step("cut", "link-down", FLAPPING)
    acts.do(broken)
    acts.do(undo(broken))
    acts.read_back(undo(broken))
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-1")


def test_read_back_looks_at_all_nodes_whatever_else_is_broken_there() -> None:
    acts, fabric = injector()
    cut = step("cut", "link-down", FLAPPING)
    beside = step("beside", "link-down", "p0-t0-0:p0-t1-0")
    for each in (cut, beside, undo(cut)):
        acts.do(each)
    acts.read_back(undo(cut))
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-1")


def test_denying_tells_the_endpoints_and_leaves_the_fabric_alone() -> None:
    acts, fabric = injector()
    (denied, allowed) = schedule("{at: 1s, deny: [p0-t1-1, p1], for: 1s, hosts: [h0, h3], name: controller}")
    acts.do(denied)
    assert list(acts.broken) == [("controller", 0)], "what is denied must be allowed again"
    acts.do(allowed)
    assert acts.broken == {}
    assert fabric.calls == [
        ("deny", "p0-t1-1", "p1", ("h0", "h3")),
        ("allow", "p0-t1-1", "p1", ("h0", "h3")),
    ]
    assert denied.occurrence.links == ()
    assert step_fields(denied)["hosts"] == ["h0", "h3"]
    assert step_fields(denied)["links"] == []


def test_only_the_first_fall_of_a_fault_is_cold() -> None:
    steps = schedule(f"{{at: cold-start, link-flap: {FLAPPING}, period: 2s, count: 2}}")
    assert [(each.at_ns // 1_000_000, each.action, each.cold) for each in steps] == [
        (0, INJECT, True),
        (1000, HEAL, False),
        (2000, INJECT, False),
        (3000, HEAL, False),
    ]
    assert not any(each.cold for each in schedule(f"{{at: 0s, link-down: {FLAPPING}, for: 1s}}"))


def by_rule(line: str) -> tuple[FaultStep, FaultStep]:
    scenario = load_scenario_text(HEAD + f"  - {{at: 1s, {line}, for: 1s, name: it}}\nendpoint: {{icrc: true}}\n")
    (occurrence,) = scenario.occurrences
    return inject(occurrence), heal(occurrence)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (
            f"link-loss: '{FLAPPING}', loss: 20%",
            [(FLAPPING, "near", PortRule("drop", 0.2)), (FLAPPING, "far", PortRule("drop", 0.2))],
        ),
        (f"one-way: '{FLAPPING}', direction: up", [(FLAPPING, "far", PortRule("drop"))]),
        (f"one-way: '{FLAPPING}', direction: down", [(FLAPPING, "near", PortRule("drop"))]),
        ("plane-loss: p1, loss: 1%", [(f"h{n}:p1-t0-{n // 2}", "near", PortRule("drop", 0.01)) for n in range(4)]),
        (
            "ev-loss: [p0-t1-1, p1-t1-0], from: h3, loss: 50%",
            [
                ("p0-t0-1:p0-t1-1", "far", PortRule("drop", 0.5, source=3)),
                ("p1-t0-1:p1-t1-0", "far", PortRule("drop", 0.5, source=3)),
            ],
        ),
        (
            "ev-loss: p0-t1-1, from: h0, to: h2, loss: 100%",
            [(FLAPPING, "far", PortRule("drop", source=0, destination=2))],
        ),
        (
            f"corrupt: '{FLAPPING}', share: 0.1%, direction: down",
            [(FLAPPING, "near", PortRule("corrupt", 0.001))],
        ),
    ],
)
def test_a_fault_by_rule_puts_its_rules_and_takes_them_away(line: str, rules: list[tuple[str, str, PortRule]]) -> None:
    acts, fabric = injector()
    begin, end = by_rule(line)
    acts.do(begin)
    assert list(fabric.rules.values()) == rules
    acts.do(end)
    assert fabric.rules == {}
    assert acts.broken == {}


def test_a_silent_switch_is_silenced_as_a_whole() -> None:
    acts, fabric = injector()
    begin, end = by_rule("switch-silent: [p1-t1-0, p0-t1-1]")
    acts.do(begin)
    assert [call for call in fabric.calls if call[0] == "silence"] == [("silence", "p1-t1-0"), ("silence", "p0-t1-1")]
    acts.do(end)
    assert fabric.rules == {}


def test_a_rate_is_cut_and_given_back() -> None:
    acts, fabric = injector()
    begin, end = by_rule(f"link-rate: ['{FLAPPING}', 'h0:p1-t0-0'], rate: 6.25mbit")
    acts.do(begin)
    assert fabric.rates == {FLAPPING: 6_250_000, "h0:p1-t0-0": 6_250_000}
    acts.do(end)
    assert fabric.rates == {}
    acts.read_back(end)
    assert fabric.calls[-1] == ("verify", "h0", "p0-t0-0", "p0-t1-1", "p1-t0-0")


def test_each_fault_heals_its_own_rules_and_no_others() -> None:
    acts, fabric = injector()
    loss, healed = by_rule(f"link-loss: '{FLAPPING}', loss: 20%")
    corrupt = renamed(by_rule(f"corrupt: '{FLAPPING}', share: 1%")[0], "bits")
    acts.do(loss)
    acts.do(corrupt)
    acts.do(healed)
    assert {rule.action for _, _, rule in fabric.rules.values()} == {"corrupt"}
    acts.read_back(healed)
    assert fabric.calls[-1] == ("verify_rules", 2)
    acts.do(undo(corrupt))
    assert fabric.rules == {}


def test_rules_that_were_put_before_one_was_refused_are_healed() -> None:
    acts, fabric = injector()
    fabric.refuses = {("add_rule", FLAPPING, "far")}
    begin, end = by_rule(f"link-loss: '{FLAPPING}', loss: 20%")
    with pytest.raises(FabricError):
        acts.do(begin)
    assert len(fabric.rules) == 1
    acts.do(end)
    assert fabric.rules == {}


def test_a_rule_that_outlives_its_fault_is_found() -> None:
    acts, fabric = injector()
    begin, end = by_rule(f"one-way: '{FLAPPING}', direction: up")
    acts.do(begin)
    kept = dict(fabric.rules)
    acts.do(end)
    acts.verify_healed()
    fabric.rules = kept
    with pytest.raises(FabricError, match="read-back of the rules"):
        acts.read_back(end)
    with pytest.raises(FabricError, match="read-back of the rules"):
        acts.verify_healed()


def test_a_rate_that_outlives_its_fault_is_found() -> None:
    acts, fabric = injector()
    fabric.rates = {FLAPPING: 6_250_000}
    with pytest.raises(FabricError, match=f"p0-t0-0: read-back: {FLAPPING} is still at 6.25mbit"):
        acts.verify_healed()


def test_loss_and_rates_do_not_hinder_the_read_back_of_a_link() -> None:
    """Their nodes are as planned but for rules and rates, which are known."""
    acts, fabric = injector()
    cut = step("cut", "link-down", FLAPPING)
    acts.do(renamed(by_rule(f"link-loss: '{FLAPPING}', loss: 1%")[0], "loss"))
    acts.do(renamed(by_rule(f"link-rate: '{FLAPPING}', rate: 1mbit")[0], "rate"))
    acts.do(cut)
    acts.do(undo(cut))
    acts.read_back(undo(cut))
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-1")


def test_a_record_tells_how_and_whose_packets() -> None:
    begin, end = by_rule("ev-loss: p0-t1-1, from: h0, to: h2, loss: 50%")
    assert begin.occurrence.title == "ev-loss p0-t1-1 50% from h0 to h2"
    assert step_fields(begin) == {
        "op": "inject",
        "fault": "it",
        "kind": "ev-loss",
        "target": "p0-t1-1",
        "cycle": 0,
        "links": [FLAPPING],
        "how": "50% from h0 to h2",
        "from": "h0",
        "to": "h2",
    }
    assert step_fields(end) == {**step_fields(begin), "op": "heal"}
    assert step_fields(by_rule(f"link-rate: '{FLAPPING}', rate: 1mbit")[0])["links"] == []


def test_only_faults_of_ports_touch_nodes() -> None:
    steps = schedule(f"{{at: 1s, link-loss: '{FLAPPING}', loss: 1%, for: 1s}}", "{at: 1s, deny: p1, for: 1s}")
    assert touched_nodes([each.occurrence for each in steps], PLAN) == ()
