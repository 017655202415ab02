"""Targets by name, pattern, class, or drawn by the seed; and the flaps whose times are drawn."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mrc_testbed.testbed.report.random_targets import random_target_lines
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario_text
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from tests.unit.scenario.test_mistakes import HEAD, fault, mistakes

PLAN = build_plan(clos2_shape(2, 2, 2, 2, 25_000_000, 20_000_000))
NIC = {link.name for link in PLAN.links if link.is_host_link}
S = 10**9


def load(*lines: str, seed: int | None = None) -> Scenario:
    return load_scenario_text(HEAD + "faults:\n" + "".join(f"  - {{{line}}}\n" for line in lines), seed=seed)


def targets(written: str, kind: str = "link-down", rest: str = "for: 1s", seed: int | None = None) -> list[str]:
    return [
        name
        for occurrence in load(f"at: 1s, {kind}: {written}, {rest}", seed=seed).occurrences
        for name in occurrence.targets
    ]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("h3:*", ["h3:p0-t0-1", "h3:p1-t0-1"]),
        ("p0-t0-*:p0-t1-1", ["p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"]),
        ("'h[0-1]:p1-*'", ["h0:p1-t0-0", "h1:p1-t0-0"]),
        ("'*:p?-t1-0'", ["p0-t0-0:p0-t1-0", "p0-t0-1:p0-t1-0", "p1-t0-0:p1-t1-0", "p1-t0-1:p1-t1-0"]),
        ("[p1-t0-1:p1-t1-0, h0:*]", ["p1-t0-1:p1-t1-0", "h0:p0-t0-0", "h0:p1-t0-0"]),
        ("[h0:*, 'h?:p0-t0-0']", ["h0:p0-t0-0", "h0:p1-t0-0", "h1:p0-t0-0"]),
        ("NIC links", sorted(NIC, key=list(PLAN.link_by_name).index)),
        ("T0-T1 links", [link.name for link in PLAN.links if not link.is_host_link]),
        ("links", list(PLAN.link_by_name)),
    ],
)
def test_patterns_and_classes_of_links(written: str, names: list[str]) -> None:
    assert targets(written) == names


@pytest.mark.parametrize(
    ("kind", "rest", "written", "names"),
    [
        ("switch-silent", "for: 1s", "p*-t1-1", ["p0-t1-1", "p1-t1-1"]),
        ("switch-silent", "for: 1s", "p0-*", ["p0-t0-0", "p0-t0-1", "p0-t1-0", "p0-t1-1"]),
        ("switch-reboot", "boot: 1s", "T1 switches", ["p0-t1-0", "p0-t1-1", "p1-t1-0", "p1-t1-1"]),
        ("plane-loss", "loss: 1%, for: 1s", "p*", ["p0", "p1"]),
        ("plane-loss", "loss: 1%, for: 1s", "planes", ["p0", "p1"]),
        ("ev-loss", "from: h0, loss: 1%, for: 1s", "p1-t1-*", ["p1-t1-0", "p1-t1-1"]),
        ("deny", "for: 1s, hosts: [h0]", "p?-t1-0", ["p0-t1-0", "p1-t1-0"]),
        ("deny", "for: 1s", "'p[1]'", ["p1"]),
    ],
)
def test_patterns_of_switches_planes_and_uplinks(kind: str, rest: str, written: str, names: list[str]) -> None:
    assert targets(written, kind, rest) == names


def test_a_transceiver_takes_its_ports_and_no_others() -> None:
    (occurrence,) = load("at: 1s, transceiver-flap: p1-t0-1, first: 1, ports: 1, period: 1s, count: 1").occurrences
    assert (occurrence.targets, occurrence.links) == (("p1-t0-1",), ("h3:p1-t0-1",))
    assert occurrence.title == "transceiver-flap p1-t0-1 port 1"
    (occurrence,) = load("at: 1s, transceiver-flap: p0-t0-0, period: 1s, count: 1").occurrences
    assert occurrence.links == ("h0:p0-t0-0", "h1:p0-t0-0"), "four, or all there are"


def test_a_draw_follows_the_seed_and_takes_nothing_twice() -> None:
    drawn = [targets("any 3 of NIC links", seed=seed) for seed in range(20)]
    assert all(len(set(names)) == 3 and set(names) <= NIC for names in drawn)
    assert len({tuple(names) for names in drawn}) > 10
    assert drawn == [targets("any 3 of NIC links", seed=seed) for seed in range(20)]
    every = targets("any 8 of NIC links")
    assert set(every) == NIC


def test_any_without_a_number_is_one() -> None:
    assert len(targets("any of T1 switches", "switch-reboot", "boot: 1s")) == 1
    assert targets("any of h3:p0-t0-1") == ["h3:p0-t0-1"]


def test_a_draw_in_a_list_leaves_out_what_is_there_already() -> None:
    for seed in range(10):
        names = targets("[any 1 of h3:*, h3:p0-t0-1]", seed=seed)
        assert names == ["h3:p1-t0-1", "h3:p0-t0-1"]
        two = targets("[any of h3:*, any of h3:*]", seed=seed)
        assert sorted(two) == ["h3:p0-t0-1", "h3:p1-t0-1"]


def test_another_fault_changes_no_draw_and_another_name_does() -> None:
    line = "at: 1s, link-flap: any 2 of links, period: 1s, count: 3, jitter: 20%, name: mine"
    alone = load(line).occurrences
    other = "at: 2s, link-down: any 2 of links, for: 1s, name: other"
    assert load(other, line).occurrences[1:] == alone
    changed = {load(line.replace("mine", f"mine-{n}")).occurrences[0].targets for n in range(10)}
    assert len(changed) > 5


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("link-down: any 99 of links, for: 1s", "7:25: faults.0.link-down: asks for 99 of links, and there are 16 to"),
        ("link-down: any two of links, for: 1s", "'two' is not a number of targets; write for example `any 2 of T0-T1"),
        ("link-down: any 0 of links, for: 1s", "'0' is not a number of targets"),
        ("link-down: any 2 of T1 links, for: 1s", "'T1 links' is not a name; did you mean 'T0-T1 links'?"),
        (
            "link-down: T1 switches, for: 1s",
            "T1 switches are not allowed here; link-down takes links, NIC links",
        ),
        ("link-down: [h0:*, 'p9-*:*'], for: 1s", "7:33: faults.0.link-down.1: 'p9-*:*' matches none of the links;"),
        ("link-down: 'p0-*', for: 1s", "faults.0.link-down: 'p0-*' matches none of the links; there are h0:p0-t0-0.."),
        ("plane-loss: 'p0-*', loss: 1%, for: 1s", "'p0-*' matches none of the planes; there are p0..p1"),
        ("port-flap: 'p0-*:*', period: 1s, count: 1", "'p0-*:*' matches none of the NIC links; there are h0:p0-t0-0"),
        ("port-flap: 'p0-t0-0:p0-t1-0', period: 1s, count: 1", "is no NIC port; port-flap needs a link of a host"),
        ("transceiver-flap: p0-t1-0, period: 1s, count: 1", "p0-t1-0 is a T1; transceiver-flap needs a T0"),
        ("transceiver-flap: p0-t0-0, ports: 3, period: 1s, count: 1", "faults.0.ports: 3 ports from port 0 on; a T0"),
        ("transceiver-flap: p0-t0-0, first: 2, period: 1s, count: 1", "faults.0.first: there is no port 2; a T0 has"),
        ("port-flap: 'h0:*', period: 2ms, count: 1, jitter: 10%", "both must be at least 1ms, the jitter taken off"),
        ("link-down: h0, for: 1s", "h0 is one node; link-down needs a link by its two ends"),
        ("deny: any 3 of planes, for: 1s", "asks for 3 of planes, and there are 2 to draw from"),
        ("deny: planes, for: 1s", "faults.0.deny: leaves no path from h0"),
    ],
)
def test_targets_that_mean_nothing(line: str, says: str) -> None:
    (found,) = mistakes(fault(f"at: 1s, {line}"))
    assert says in found


def test_links_fall_together_and_ports_each_by_itself() -> None:
    rest = "period: 1s, count: 5, jitter: 40%"
    together = load(f"at: 1s, link-flap: h0:*, {rest}").occurrences
    assert [occurrence.targets for occurrence in together] == [("h0:p0-t0-0", "h0:p1-t0-0")] * 5
    apart = load(f"at: 1s, port-flap: h0:*, {rest}").occurrences
    assert sorted(occurrence.targets for occurrence in apart) == [("h0:p0-t0-0",)] * 5 + [("h0:p1-t0-0",)] * 5
    assert [occurrence.number for occurrence in apart] == list(range(10))
    assert [occurrence.begin_ns for occurrence in apart] == sorted(occurrence.begin_ns for occurrence in apart)
    first, second = (lengths(apart, f"h0:p{plane}-t0-0") for plane in (0, 1))
    assert first != second


def lengths(occurrences: tuple[Occurrence, ...], target: str) -> list[int]:
    return [occurrence.end_ns - occurrence.begin_ns for occurrence in occurrences if occurrence.targets == (target,)]


def test_jitter_moves_every_time_by_no_more_than_it_says() -> None:
    scenario = load("at: 1s, link-flap: h0:p0-t0-0, period: 100ms, count: 200, duty: 0.25, jitter: 40%")
    occurrences = scenario.occurrences
    down = lengths(occurrences, "h0:p0-t0-0")
    up = [after.begin_ns - before.end_ns for before, after in pairwise(occurrences)]
    assert 15_000_000 <= min(down) < 18_000_000 < 32_000_000 < max(down) <= 35_000_000
    assert 45_000_000 <= min(up) < 55_000_000 < 95_000_000 < max(up) <= 105_000_000
    assert occurrences[0].begin_ns == S
    assert occurrences[-1].end_ns <= scenario.faults[0].end_ns


def test_only_the_first_fall_of_each_port_is_cold() -> None:
    occurrences = load("at: cold-start, port-flap: h0:*, period: 1s, count: 2, jitter: 10%").occurrences
    assert [(occurrence.cold, occurrence.begin_ns == 0) for occurrence in occurrences] == [(True, True)] * 2 + [
        (False, False)
    ] * 2


def test_validate_tells_what_was_drawn() -> None:
    scenario = load(
        "at: 1s, link-down: h0:p0-t0-0, for: 1s, name: plain", "at: 3s, link-down: any of h3:*, for: 1s, name: one"
    )
    (line,) = random_target_lines(scenario)
    assert line == f"one: any of h3:*: {scenario.occurrences[1].targets[0]}"
