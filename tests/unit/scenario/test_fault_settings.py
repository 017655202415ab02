"""Faults of tables, of levels and of hosts: what they come to, and what is refused of them."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.fabric.commands import mislead_lines, port_lines
from mrc_testbed.testbed.scenario import Occurrence, load_scenario_text
from mrc_testbed.testbed.scenario.faults.kinds.tables import ends_at, misled_by
from mrc_testbed.testbed.scenario.model.scale import scaled_occurrence
from mrc_testbed.testbed.switching.tables import routes_with
from mrc_testbed.testbed.switching.thresholds import ALWAYS, FLAWLESS, NEVER, LevelFlaws, PortThresholds, all_flaws
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.tables import routes_of
from tests.unit.scenario.test_mistakes import HEAD, LINK, fault, mistakes

LEVELS = PortThresholds().in_bytes(100_000, last_hop=False)


def occurrence(line: str) -> tuple[Occurrence, dict[str, str | None], set[str]]:
    """The one occurrence of a fault, its entries as names of ports, and where its packets end."""
    scenario = load_scenario_text(fault(line))
    (one,) = scenario.occurrences
    plan = scenario.plan()
    found = {_name(own): _name(by) if by else None for own, by in misled_by(one, plan).items()}
    return one, found, ends_at(one, plan)


def _name(port: Interface) -> str:
    return f"{port.node} {port.name}"


@pytest.mark.parametrize(
    ("line", "entries", "ends"),
    [
        (f"entry-missing: '{LINK}', direction: up", {"p0-t0-0 up1": None}, {"p0-t0-0"}),
        (f"entry-missing: '{LINK}', direction: down", {"p0-t1-1 down0": None}, {"p0-t1-1"}),
        ("entry-missing: 'h1:p1-t0-0', direction: down", {"p1-t0-0 down1": None}, {"p1-t0-0"}),
        (f"entry-wrong: '{LINK}', direction: up", {"p0-t0-0 up1": "p0-t0-0 up0"}, {"p0-t1-0"}),
        (f"entry-wrong: '{LINK}', direction: down", {"p0-t1-1 down0": "p0-t1-1 down1"}, {"p0-t0-1"}),
        (
            f"entry-wrong: '{LINK}', direction: up, by: 'h1:p0-t0-0'",
            {"p0-t0-0 up1": "p0-t0-0 down1"},
            {"h1"},
        ),
        (
            f"cables-swapped: '{LINK}'",
            {"p0-t0-0 up1": "p0-t0-0 up0", "p0-t0-0 up0": "p0-t0-0 up1"},
            {"p0-t1-0", "p0-t1-1"},
        ),
        (
            f"cables-swapped: '{LINK}', with: 'p0-t0-1:p0-t1-1'",
            {"p0-t1-1 down0": "p0-t1-1 down1", "p0-t1-1 down1": "p0-t1-1 down0"},
            {"p0-t0-0", "p0-t0-1"},
        ),
    ],
)
def test_entries_of_a_table(line: str, entries: dict[str, str | None], ends: set[str]) -> None:
    one, found, ending = occurrence(f"at: 1s, {line}, for: 1s")
    assert (found, ending) == (entries, ends)
    assert one.links[0] in (LINK, "h1:p1-t0-0"), "the link that no packet comes by"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "entry-missing: 'h1:p1-t0-0', direction: up, for: 1s",
            "faults.0.direction: up h1:p1-t0-0 it is h1 that sends, and a host is no switch",
        ),
        (f"entry-missing: '{LINK}', for: 1s", "faults.0: the key 'direction' is missing; write for example"),
        (
            f"entry-wrong: '{LINK}', direction: up, by: 'p0-t0-1:p0-t1-1', for: 1s",
            "faults.0.by: p0-t0-1:p0-t1-1 has no end at p0-t0-0; name another link of p0-t0-0",
        ),
        (f"entry-wrong: '{LINK}', direction: up, by: '{LINK}', for: 1s", "is the link itself; name another one"),
        (f"entry-wrong: '{LINK}', direction: up, by: x, for: 1s", "faults.0.by: there is no link 'x'"),
        (
            f"cables-swapped: '{LINK}', with: 'p0-t0-1:p0-t1-0', for: 1s",
            "faults.0.with: p0-t0-1:p0-t1-0 has no end at p0-t0-0 or p0-t1-1, where p0-t0-0:p0-t1-1 ends",
        ),
        ("shallow-buffer: p0-t1-1, drop: 0.0, for: 1s", "faults.0.drop: must be at least 0.05"),
        ("ecn-stuck: p0-t1-1, marks: often, for: 1s", "faults.0.marks: must be"),
        (
            "host-pause: p0-t1-1, for: 1s",
            "faults.0.host-pause: p0-t1-1 is a switch; host-pause needs a host, such as h3",
        ),
        ("host-pause: h9, for: 1s", "faults.0.host-pause: there is no host 'h9'"),
        ("host-pause: T1 switches, for: 1s", "T1 switches are not allowed here; host-pause takes hosts"),
    ],
)
def test_what_is_wrong_with_one(line: str, says: str) -> None:
    assert any(says in told for told in mistakes(fault(f"at: 1s, {line}")))


@pytest.mark.parametrize(
    ("line", "more", "options", "says"),
    [
        (
            f"entry-missing: '{LINK}', direction: up",
            "transport: roce\n",
            [],
            "entry-missing changes entries for uSIDs, and no switch of this fabric has written ones",
        ),
        (f"cables-swapped: '{LINK}'", "routing: bgp\nbgp: {carries: locators}\n", [], "no switch of this fabric"),
        ("trim-off: p0-t1-1", "transport: roce\n", [], "no switch trims packets of this transport"),
        (
            "shallow-buffer: p0-t1-1, drop: 0.2",
            "transport: roce\nroce: {buffers: pfc}\nworld: virtual\n",
            [],
            "ports that pause each other (buffers: pfc) have no level that shallow-buffer changes",
        ),
        ("host-slow: h1, per_packet: 1ms", "transport: tcp\n", [], "the kernel handles these packets"),
        (
            "ecn-stuck: p0-t1-1, marks: never",
            "",
            ["fabric.switch=plain"],
            "ecn-stuck needs the port program, and fabric.switch is",
        ),
    ],
)
def test_where_it_can_have_no_effect_it_is_refused(line: str, more: str, options: list[str], says: str) -> None:
    text = more + fault(f"at: 1s, {line}, for: 1s")
    assert any(says in told for told in mistakes(text, *options))


def test_flaws_of_levels() -> None:
    assert FLAWLESS.of(LEVELS, 100_000) == LEVELS
    always = LevelFlaws(marks="always").of(LEVELS, 100_000)
    assert (always.ecn_low, always.ecn_high) == (ALWAYS, ALWAYS)
    never = LevelFlaws(marks="never").of(LEVELS, 100_000)
    assert (never.ecn_low, never.ecn_high, never.trim) == (NEVER, NEVER, LEVELS.trim)
    assert LevelFlaws(trims=False).of(LEVELS, 100_000).trim == NEVER
    assert LevelFlaws(drop=0.3).of(LEVELS, 100_000).drop == 30_000
    assert LevelFlaws(drop=9).of(LEVELS, 100_000).drop == LEVELS.drop, "no flaw makes a buffer deeper"


def test_flaws_of_several_faults_at_once() -> None:
    several = [LevelFlaws(marks="never", drop=0.5), LevelFlaws(trims=False), LevelFlaws(marks="always", drop=0.7)]
    assert all_flaws(several) == LevelFlaws("always", False, 0.5)
    assert all_flaws([]) == FLAWLESS


def test_routes_and_lines_of_a_misled_switch() -> None:
    plan = load_scenario_text(HEAD).plan()
    up = {own.name: own for own, _ in plan.ports["p0-t0-0"]}
    wrong = {up["up1"]: up["up0"]}
    planned, held = list(routes_of(plan, "p0-t0-0")), list(routes_with(wrong, plan, "p0-t0-0"))
    (before,) = set(planned) - set(held)
    (after,) = set(held) - set(planned)
    assert (before.prefix, before.device, after.device) == (after.prefix, "up1", "up0")
    assert len(list(routes_with({up["up1"]: None}, plan, "p0-t0-0"))) == len(planned) - 1
    assert list(routes_with(wrong, plan, "p0-t0-1")) == list(routes_of(plan, "p0-t0-1"))
    lines = list(mislead_lines(plan, up["up1"], up["up1"], up["up0"], ()))
    assert lines == [
        f"route del {before.prefix} dev up1",
        f"route add {before.prefix} via {after.target} dev up0",
    ]
    assert list(mislead_lines(plan, up["up1"], None, up["up1"], [up["up1"]])) == [], (
        "a port that is down has no entries"
    )


def test_a_port_that_comes_up_again_does_not_mend_a_misled_entry() -> None:
    plan = load_scenario_text(HEAD).plan()
    up = {own.name: own for own, _ in plan.ports["p0-t0-0"]}
    lines = "\n".join(port_lines(plan, "p0-t0-0", [up["up1"]], [], {up["up1"]: up["up0"]}))
    assert "link set dev up1 up" in lines
    assert "route add" not in lines
    lines = "\n".join(port_lines(plan, "p0-t0-0", [up["up0"]], [], {up["up1"]: up["up0"]}))
    assert lines.count("route add") == 2, "its own entry, and the one that leads here"


def test_a_time_a_packet_is_scaled_with_all_others() -> None:
    (one,) = load_scenario_text(fault("at: 1s, host-slow: h1, per_packet: 1ms, for: 1s")).occurrences
    scaled = scaled_occurrence(one, 8000)
    assert scaled.parameters.values == {"per_packet_ns": 125}
    (pause,) = load_scenario_text(fault("at: 1s, host-pause: h1, for: 1s")).occurrences
    assert scaled_occurrence(pause, 8000).parameters.values == {"held": True}
