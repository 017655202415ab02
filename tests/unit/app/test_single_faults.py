"""Every outage of every kind can be written by itself, and is then the same outage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.hunt.subject import HuntRequest, ImpossibleError, Subject
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS

HEAD = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 4, port_rate: 25mbit, rtt: 20ms}
endpoint: {icrc: true}
workload: [{train: {hosts: all, steps: 30, compute: 100ms, allreduce: 1MiB}}]
expect: [qp_errors == 0]
"""
KEYS = {
    "link-down": "p0-t0-*:p0-t1-1, for: 123456789ns",
    "link-flap": "any 2 of T0-T1 links, period: 300ms, count: 3, duty: 0.3, jitter: 40%",
    "port-flap": "[h0:p0-t0-0, h1:p1-t0-0], period: 200ms, count: 2, jitter: 10%",
    "transceiver-flap": "p0-t0-1, ports: 2, first: 1, period: 100ms, count: 2",
    "switch-reboot": "any of T1 switches, boot: 333ms",
    "switch-silent": "p1-t1-0, for: 70ms",
    "link-loss": "p0-t0-0:p0-t1-0, for: 1s, loss: 12.5%, direction: up",
    "link-rate": "p0-t0-0:p0-t1-0, for: 1s, rate: 1mbit",
    "one-way": "p0-t0-0:p0-t1-0, for: 1s, direction: down",
    "plane-loss": "p1, for: 300ms, loss: 0.1%",
    "ev-loss": "p1-t1-1, for: 300ms, loss: 30%, from: h0, to: h5",
    "corrupt": "p0-t0-0:p0-t1-0, for: 1s, share: 1%",
    "entry-missing": "[p0-t0-0:p0-t1-0, p0-t0-1:p0-t1-0], for: 1s, direction: down",
    "entry-wrong": "p0-t0-0:p0-t1-0, for: 1s, direction: up",
    "cables-swapped": "any of T0-T1 links, for: 1s",
    "ecn-stuck": "p0-t1-0, for: 1s, marks: never",
    "trim-off": "any of T1 switches, for: 1s",
    "shallow-buffer": "p0-t1-0, for: 1s, drop: 0.25",
    "host-slow": "any 2 of hosts, for: 1s, per_packet: 750us",
    "host-pause": "h3, for: 123456789ns",
    "deny": "[p1, p0-t1-0], for: 1s, hosts: [h0, h4]",
}
CHAOS = "{at: 1s, for: 2s, name: storm, chaos: {%s}}"
CHAOTIC = {
    kind: {
        "link-rate": "{times: 3/s, rate: 1mbit}",
        "ev-loss": "{times: 3/s, from: h0}",
        "host-slow": "{times: 3/s, per_packet: 1ms}",
    }.get(kind, "3/s")
    for kind, model in KINDS.items()
    if model.chaos
}


def subject(tmp_path: Path, entry: str, move: bool | None = None, scale: int = 1) -> Subject:
    file = tmp_path / "small.yaml"
    file.write_text(f"{HEAD}faults: [{entry}]\nscale: {scale}\n")
    return Subject(HuntRequest(file, move=move))


def comparable(scenario: Scenario) -> list[Occurrence]:
    return sorted(scenario.occurrences, key=lambda one: (one.begin_ns, one.end_ns, one.targets, one.kind, one.number))


def unnumbered(occurrences: list[Occurrence]) -> list[dict[str, Any]]:
    return sorted(({**one.as_record(), "cycle": 0, "number": 0} for one in occurrences), key=str)


def same_when_written(found: Subject, seed: int) -> list[Occurrence]:
    tried = found.with_seed(seed)
    written = load_scenario_text(found.text(seed, found.faults_of(seed)))
    assert unnumbered(comparable(written)) == unnumbered(comparable(tried))
    return comparable(tried)


def test_no_kind_is_left_out() -> None:
    assert set(KEYS) == set(KINDS)


@pytest.mark.parametrize("kind", KEYS)
def test_an_outage_of_each_kind_is_the_same_when_it_is_written(tmp_path: Path, kind: str) -> None:
    assert same_when_written(subject(tmp_path, f"{{at: 1s, {kind}: {KEYS[kind]}, name: cut}}", move=False), 7)


@pytest.mark.parametrize("kind", CHAOTIC)
def test_chaos_of_each_kind_is_the_same_when_it_is_written(tmp_path: Path, kind: str) -> None:
    assert same_when_written(subject(tmp_path, CHAOS % f"{kind}: {CHAOTIC[kind]}"), 7)


@pytest.mark.parametrize("kind", KEYS)
def test_a_fault_that_was_moved_hits_as_many_targets_of_its_class_as_long(tmp_path: Path, kind: str) -> None:
    found = subject(tmp_path, f"{{at: 1s, {kind}: {KEYS[kind]}, name: cut}}", move=True)
    before, after = comparable(found.with_seed(1)), same_when_written(found, 2)
    assert len(before) == len(after)
    assert sorted(len(one.targets) for one in before) == sorted(len(one.targets) for one in after)
    assert [one.begin_ns for one in before] != [one.begin_ns for one in after]
    assert all(0 <= one.begin_ns < one.end_ns <= found.scenario.expected_ns for one in (*before, *after))


def test_a_cold_fault_stays_at_the_cold_start(tmp_path: Path) -> None:
    found = subject(tmp_path, '{at: cold-start, link-down: "p0-t0-0:p0-t1-1", for: 1s}')
    assert all(one.cold for seed in range(5) for one in same_when_written(found, seed))
    assert len({one.targets for seed in range(9) for one in found.with_seed(seed).occurrences}) > 2


def test_the_seed_draws_chaos_anew_and_the_same_again(tmp_path: Path) -> None:
    found = subject(tmp_path, CHAOS % "link-down: 3/s")
    assert found.with_seed(1).occurrences == found.with_seed(1).occurrences != found.with_seed(2).occurrences


def test_a_seed_is_what_the_option_seed_draws(tmp_path: Path) -> None:
    found = subject(tmp_path, CHAOS % "link-down: 3/s, switch-reboot: 1/s")
    text = f"{HEAD}faults: [{CHAOS % 'link-down: 3/s, switch-reboot: 1/s'}]\n"
    assert found.with_seed(5).occurrences == load_scenario_text(text, seed=5).occurrences


def test_a_folded_fabric_has_the_folded_names(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    faults = CHAOS % "link-down: 3/s, link-rate: {times: 1/s, rate: 1mbit}"
    head = HEAD.replace("endpoint: {icrc: true}", "transport: roce")
    file.write_text(f"{head}faults: [{faults}]\n")
    assert same_when_written(Subject(HuntRequest(file)), 3)


def test_expectations_about_faults_that_are_gone_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    down = "{at: 1s, link-down: p0-t0-0:p0-t1-1, for: 1s, name: %s}"
    expect = "expect: [qp_errors == 0, packets_lost == 0 during a, packets_lost == 0 during b]"
    file.write_text(f"{HEAD.replace('expect: [qp_errors == 0]', expect)}faults: [{down % 'a'}, {down % 'b'}]\n")
    found = Subject(HuntRequest(file, move=False))
    kept = [fault for fault in found.faults_of(1) if fault.name == "b"]
    written = load_scenario_text(found.text(1, kept))
    assert [line.text for line in written.expect] == ["qp_errors == 0", "packets_lost == 0 during b"]


@pytest.mark.parametrize("entry", [CHAOS % "link-down: 3/s", '{at: 1s, link-down: "p0-t0-0:p0-t1-1", for: 300ms}'])
def test_at_a_scale_the_same_faults_come_sooner_and_are_written_as_they_were(tmp_path: Path, entry: str) -> None:
    usual, fast = subject(tmp_path, entry), subject(tmp_path, entry, scale=100)
    expected = [(one.targets, round(one.begin_ns / 100)) for one in comparable(usual.with_seed(7))]
    assert [(one.targets, one.begin_ns) for one in comparable(fast.with_seed(7))] == expected
    assert expected
    assert fast.faults_of(7) == usual.faults_of(7)
    same_when_written(fast, 7)


@pytest.mark.nightly
def test_denials_that_meet_or_leave_no_path_are_no_schedule(tmp_path: Path) -> None:
    found = subject(tmp_path, "{at: 200ms, deny: p0, for: 2s, name: a}, {at: 3s, deny: p1, for: 2s, name: b}")
    refused = set()
    for seed in range(1, 40):
        try:
            found.with_seed(seed)
        except ImpossibleError as error:
            refused.add(next(why for why in ("already denied", "leaves no path") if why in str(error)))
        else:
            same_when_written(found, seed)
    assert refused == {"already denied", "leaves no path"}
