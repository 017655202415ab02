"""Faults by the port program and levels of switch ports, as scenarios write them, and what is wrong with them."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.scenario import Scenario, load_scenario_text, scenario_json_schema
from mrc_testbed.testbed.scenario.rules.switch_rules import MAX_RULES
from mrc_testbed.testbed.scenario.text.units import format_share
from mrc_testbed.testbed.switching.port_rules import RULES
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS, PortThresholds
from tests.unit.scenario.test_mistakes import HEAD, LINK, fault, mistakes, two

ICRC = "endpoint: {icrc: true}\n"
UNDER_T1 = ("p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1")


def load(line: str) -> Scenario:
    return load_scenario_text(fault(line) + ICRC)


def switch(value: str) -> str:
    return HEAD.replace("planes: 2", f"switch: {value}, planes: 2")


@pytest.mark.parametrize(
    ("line", "title", "links", "places"),
    [
        (
            f"link-loss: '{LINK}', loss: 20%, direction: up",
            f"link-loss {LINK} 20% up",
            (LINK,),
            [(LINK, "far")],
        ),
        (f"link-loss: '{LINK}', loss: 0.5%", f"link-loss {LINK} 0.5%", (LINK,), [(LINK, "near"), (LINK, "far")]),
        (f"one-way: '{LINK}', direction: down", f"one-way {LINK} down", (LINK,), [(LINK, "near")]),
        (
            "plane-loss: p1, loss: 1%",
            "plane-loss p1 1%",
            ("h0:p1-t0-0", "h1:p1-t0-0", "h2:p1-t0-1", "h3:p1-t0-1"),
            [("h0:p1-t0-0", "near"), ("h1:p1-t0-0", "near"), ("h2:p1-t0-1", "near"), ("h3:p1-t0-1", "near")],
        ),
        (
            "ev-loss: [p0-t1-1, p1-t1-0], from: h2, to: h0, loss: 100%",
            "ev-loss p0-t1-1, p1-t1-0 100% from h2 to h0",
            ("p0-t0-1:p0-t1-1", "p1-t0-1:p1-t1-0"),
            [("p0-t0-1:p0-t1-1", "far"), ("p1-t0-1:p1-t1-0", "far")],
        ),
        (
            f"corrupt: '{LINK}', share: 0.0001%, direction: down",
            f"corrupt {LINK} 0.0001% down",
            (LINK,),
            [(LINK, "near")],
        ),
        (
            "switch-silent: [p0-t1-1, p0-t0-0]",
            "switch-silent p0-t1-1, p0-t0-0",
            (*UNDER_T1, "h0:p0-t0-0", "h1:p0-t0-0", "p0-t0-0:p0-t1-0"),
            [
                *((link, "far") for link in UNDER_T1),
                *(("h0:p0-t0-0", "far"), ("h1:p0-t0-0", "far")),
                *(("p0-t0-0:p0-t1-0", "near"), ("p0-t0-0:p0-t1-1", "near")),
            ],
        ),
        (f"link-rate: '{LINK}', rate: 6.25mbit", f"link-rate {LINK} at 6.25mbit", (), []),
    ],
)
def test_what_a_fault_breaks_and_where_its_rules_go(
    line: str, title: str, links: tuple[str, ...], places: list[tuple[str, str]]
) -> None:
    for at in ("6s", "cold-start"):
        scenario = load(f"at: {at}, {line}, for: 4s")
        (declared,) = scenario.faults
        (occurrence,) = scenario.occurrences
        assert occurrence.title == title
        assert occurrence.links == links
        assert list(occurrence.places) == places
        assert declared.end_ns - declared.at_ns == 4_000_000_000
        assert scenario.needs_port_program == ("" if not places else f"fault {declared.name!r} ({declared.kind})")


def test_long_titles_are_cut() -> None:
    (declared,) = load("at: 1s, ev-loss: [p0-t1-1, p1-t1-0, p1-t1-1], from: h2, loss: 1%, for: 1s").occurrences
    assert declared.title == "ev-loss p0-t1-1, p1-t1-0 and 1 more 1% from h2"


@pytest.mark.parametrize(("millionths", "text"), [(1, "0.0001%"), (1_000, "0.1%"), (10_000, "1%"), (1_000_000, "100%")])
def test_shares_as_text(millionths: int, text: str) -> None:
    assert format_share(millionths) == text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"link-loss: '{LINK}', loss: 0%", "7:50: faults.0.loss: must be more than 0, such as 20% or 0.1%"),
        (f"link-loss: '{LINK}', loss: 100.1%", "faults.0.loss: 100.1% is above 100%; write a percentage up to 100%"),
        (f"link-loss: '{LINK}', loss: 20", "faults.0.loss: 20 has no unit; write a percentage, such as 20%"),
        (f"link-loss: '{LINK}', loss: 0.2", "faults.0.loss: 0.2 has no unit"),
        (f"link-loss: '{LINK}', loss: -1%", "faults.0.loss: -1% is negative"),
        (f"link-loss: '{LINK}', loss: 0.00001%", "0.00001% is too fine"),
        (f"link-loss: '{LINK}'", "7:5: faults.0: the key 'loss' is missing; write for example `loss: 20%`"),
        (f"link-loss: '{LINK}', loss: 1%, direction: left", "faults.0.direction: must be 'up', 'down' or 'both'"),
        ("link-loss: p0, loss: 1%", "faults.0.link-loss: there is no link 'p0'"),
        (f"one-way: '{LINK}'", "the key 'direction' is missing; write for example `direction: up`"),
        (f"one-way: '{LINK}', direction: both", "faults.0.direction: must be 'up' or 'down'"),
        ("plane-loss: p2, loss: 1%", "7:26: faults.0.plane-loss: there is no plane 'p2'; there are p0..p1"),
        ("plane-loss: [p1, p0-t1-1], loss: 1%", "7:31: faults.0.plane-loss.1: p0-t1-1 is no plane; plane-loss needs"),
        ("plane-loss: [p1, p1], loss: 1%", "faults.0.plane-loss.1: duplicate target p1"),
        ("ev-loss: p0-t1-7, from: h0, loss: 1%", "7:23: faults.0.ev-loss: there is no switch 'p0-t1-7'; did you mean"),
        ("ev-loss: p0-t0-1, from: h0, loss: 1%", "p0-t0-1 is no uplink; ev-loss needs an EV by its plane and T1"),
        (
            "ev-loss: p0, from: h0, loss: 1%",
            "p0 is no uplink; ev-loss needs an EV by its plane and T1, such as p1-t1-1",
        ),
        ("ev-loss: p0-t1-1, loss: 1%", "the key 'from' is missing; write for example `from: h0`"),
        ("ev-loss: p0-t1-1, from: [h0], loss: 1%", "faults.0.from: must be the name of a host, such as h0"),
        ("ev-loss: p0-t1-1, from: h9, loss: 1%", "7:38: faults.0.from: there is no host 'h9'; there are h0..h3"),
        ("ev-loss: p0-t1-1, from: h0, to: h1, loss: 1%", "7:46: faults.0.to: h1 is below the T0 of h0: no path betw"),
        ("ev-loss: p0-t1-1, from: h0, to: hx, loss: 1%", "7:46: faults.0.to: there is no host 'hx'"),
        ("switch-silent: h0", "h0 is a host; switch-silent needs a switch, such as p1-t1-1"),
        (
            f"link-rate: '{LINK}', rate: 25mbit",
            "7:50: faults.0.rate: 25mbit is outside 100kbit to less than the",
        ),
        (f"link-rate: '{LINK}', rate: 99kbit", "faults.0.rate: 99kbit is outside"),
        (f"link-rate: '{LINK}', rate: 0bit", "faults.0.rate: must be more than 0"),
    ],
)
def test_a_wrong_fault(line: str, says: str) -> None:
    found = mistakes(fault(f"at: 1s, {line}, for: 1s"))
    assert len(found) == 1
    assert says in found[0]


def test_an_ev_of_a_host_without_part_in_the_workload() -> None:
    text = fault("at: 1s, ev-loss: p0-t1-1, from: h1, loss: 1%, for: 1s")
    says = "7:38: faults.0.from: h1 is not part of the workload and sends nothing"
    assert says in mistakes(text.replace("steps: 20", "hosts: [h0, h2], steps: 20"))[0]


def test_below_one_t0_no_ev_has_an_uplink() -> None:
    text = fault("at: 1s, ev-loss: p0-t1-1, from: h0, loss: 1%, for: 1s")
    one = text.replace("t0_groups: 2", "t0_groups: 1")
    assert "faults.0.ev-loss: below one T0 no path leads over p0-t1-1" in mistakes(one)[0]
    none = one.replace("t1: 2", "t1: 0")
    assert "this fabric has no T1" in mistakes(none)[0]
    near = text.replace("steps: 20", "hosts: [h0, h1], steps: 20")
    assert "faults.0.from: every peer of h0 in the workload is below the T0 of h0" in mistakes(near)[0]


def test_corruption_that_nobody_would_notice() -> None:
    text = fault(f"at: 1s, corrupt: '{LINK}', share: 1%, for: 1s")
    for icrc in ("", "endpoint: {icrc: false}\n"):
        (found,) = mistakes(text + icrc)
        assert "7:14: faults.0.corrupt: it would go unnoticed: the ICRC is off; add `endpoint: {icrc: true}`" in found
    assert load_scenario_text(text + ICRC).faults
    assert all("nobody" not in line for line in mistakes(text + "endpoint: {icrc: maybe}\n"))


@pytest.mark.parametrize(
    "other",
    [
        f"link-down: '{LINK}', for: 2s",
        f"link-loss: '{LINK}', loss: 1%, for: 2s",
        f"link-rate: '{LINK}', rate: 1mbit, for: 2s",
        "switch-reboot: p0-t1-1, boot: 2s",
        "switch-silent: p0-t1-1, for: 2s",
        "deny: p0-t1-1, for: 2s",
    ],
)
def test_loss_goes_with_everything_else_on_the_same_link(other: str) -> None:
    text = two(f"at: 1s, link-loss: '{LINK}', loss: 20%, for: 2s, name: loss", f"at: 2s, {other}")
    assert len(load_scenario_text(text).faults) == 2


def many(count: int, at: str = "1s", line: str = "direction: up") -> str:
    lines = (f"  - {{at: {at}, link-loss: '{LINK}', loss: 1%, {line}, for: 1s}}\n" for _ in range(count))
    return "".join(lines)


def test_a_port_holds_eight_rules() -> None:
    assert MAX_RULES == RULES
    head = HEAD + "faults:\n"
    assert len(load_scenario_text(head + many(8) + many(8, line="direction: down") + many(8, at="2s")).faults) == 24
    (found,) = mistakes(head + many(8) + "  - {at: 1.5s, switch-silent: p0-t1-1, for: 1s}\n")
    assert "s.yaml:15:5: faults.8: needs rule 9 at the far end of p0-t0-0:p0-t1-1 at the same time" in found
    found = mistakes(head + many(1, at="1.5s") + many(8) + many(1, at="1.9s"))[0]
    assert "s.yaml:7:5: faults.0: needs rule 9" in found, "the one that comes when eight are there"


@pytest.mark.parametrize(
    ("value", "use", "thresholds"),
    [
        ("auto", "auto", DEFAULT_THRESHOLDS),
        ("plain", "plain", DEFAULT_THRESHOLDS),
        ("program", "program", DEFAULT_THRESHOLDS),
        ("{}", "program", DEFAULT_THRESHOLDS),
        ("{trim: 2, drop: 5.0}", "program", PortThresholds(trim=2, drop=5.0)),
        (
            "{ecn: [0.1, 0.5], trim: 0.6, trim_last_hop: 0.7, drop: 0.9}",
            "program",
            PortThresholds(0.1, 0.5, 0.6, 0.7, 0.9),
        ),
    ],
)
def test_what_queues_at_switch_ports(value: str, use: str, thresholds: PortThresholds) -> None:
    scenario = load_scenario_text(switch(value))
    assert scenario.fabric.switch.use == use
    assert scenario.fabric.switch.thresholds() == thresholds
    assert bool(scenario.needs_port_program) == (use == "program")


def test_without_a_word_the_machine_decides() -> None:
    scenario = load_scenario_text(HEAD)
    assert scenario.fabric.switch.use == "auto"
    assert scenario.needs_port_program == ""


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("autoo", "s.yaml:3:18: fabric.switch: 'autoo' is not one of auto, program, plain; did you mean 'auto'?"),
        ("3", "fabric.switch: must be one of auto, program, plain, or levels such as {ecn: [0.2, 0.8]"),
        ("{use: plain}", "3:19: fabric.switch.use: must be alone, as in `switch: plain`"),
        ("{trimm: 2}", "fabric.switch.trimm: unknown key 'trimm'; did you mean 'trim'?"),
        ("{ecn: 0.2}", "fabric.switch.ecn: must be the two ends of the ramp, such as [0.2, 0.8]"),
        ("{ecn: [0.2, 0.5, 0.8]}", "fabric.switch.ecn: must be the two ends"),
        ("{ecn: [0.8, 0.2]}", "fabric.switch: is not in order; write ecn[0] <= ecn[1] <= drop"),
        ("{trim: 4.0}", "fabric.switch: is not in order"),
        ("{trim: 0}", "fabric.switch: is not in order"),
        ("{drop: 1000}", "fabric.switch.drop: must be at most 100"),
        ("{drop: -1}", "fabric.switch.drop: must be at least 0"),
        ("{drop: deep}", "fabric.switch.drop: must be a number, such as 3.0"),
    ],
)
def test_wrong_switch_ports(value: str, says: str) -> None:
    (found,) = mistakes(switch(value))
    assert says in found


def test_a_wrong_switch_does_not_hide_wrong_names() -> None:
    text = switch("autoo") + "faults:\n  - {at: 1s, link-down: nowhere, for: 1s}\n"
    assert [line.split(": ")[1] for line in mistakes(text)] == ["fabric.switch", "faults.0.link-down"]


def test_a_fault_that_plain_shapers_cannot_make() -> None:
    (found,) = mistakes(switch("plain") + "faults:\n  - {at: 1s, switch-silent: p0-t1-1, for: 1s}\n")
    assert "7:14: faults.0.switch-silent: switch-silent needs the port program, and fabric.switch is plain" in found
    slower = switch("plain") + f"faults:\n  - {{at: 1s, link-rate: '{LINK}', rate: 1mbit, for: 1s}}\n"
    assert load_scenario_text(slower).needs_port_program == "", "a shaper alone can be slower"


def test_the_schema_has_what_authors_write() -> None:
    schema = scenario_json_schema()
    ports = schema["$defs"]["FabricSettings"]["properties"]["switch"]
    assert ports["default"] == "auto"
    assert ports["anyOf"][0] == {"enum": ["auto", "program", "plain"]}
    assert sorted(ports["anyOf"][1]["properties"]) == ["drop", "ecn", "trim", "trim_last_hop"]
    assert schema["$defs"]["EvLoss"]["required"] == ["at", "ev-loss", "for", "from", "loss"]
    assert schema["$defs"]["LinkLoss"]["properties"]["loss"]["pattern"] == r"^\d+(\.\d+)?\s*(%)$"
