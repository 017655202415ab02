"""chaos: random faults that are all known before the run."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.report.facts import fault_rows
from mrc_testbed.testbed.report.random_targets import random_target_lines
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario_text, scenario_json_schema
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.testbed.scenario.faults.chaos import parts
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from tests.unit.checks.test_folder import RunFolder
from tests.unit.scenario.test_mistakes import HEAD, mistakes

S = 10**9
LONG = HEAD.replace("steps: 20", "steps: 2000")


def chaos(kinds: str, at: str = "1s", length: str = "600s", extra: str = "") -> str:
    return f"{LONG}faults:\n  - {{at: {at}, for: {length}, chaos: {{{kinds}}}, name: storm}}\n{extra}"


def drawn(kinds: str, seed: int = 7, length: str = "600s", extra: str = "") -> tuple[Occurrence, ...]:
    return load_scenario_text(chaos(kinds, length=length, extra=extra), seed=seed).occurrences


def test_all_occurrences_bear_the_name_and_are_numbered_by_time() -> None:
    occurrences = drawn("link-flap: 6/min, switch-reboot: 20/h, link-loss: {times: 4/min, loss: 1%, for: 2s}")
    assert {occurrence.fault for occurrence in occurrences} == {"storm"}
    assert {occurrence.kind for occurrence in occurrences} == {"link-flap", "switch-reboot", "link-loss"}
    assert [occurrence.number for occurrence in occurrences] == list(range(len(occurrences)))
    assert [occurrence.begin_ns for occurrence in occurrences] == sorted(
        occurrence.begin_ns for occurrence in occurrences
    )
    assert {occurrence.parameters.share for occurrence in occurrences if occurrence.kind == "link-loss"} == {10_000}


def test_events_come_as_often_as_is_said_and_at_poisson_times() -> None:
    counts, gaps = [], []
    for seed in range(40):
        begins = [occurrence.begin_ns for occurrence in drawn("link-down: {times: 12/min, for: 10ms}", seed)]
        counts.append(len(begins))
        gaps += [(after - before) / S for before, after in pairwise(begins)]
    assert abs(statistics.mean(counts) - 120) < 5 * (120 / 40) ** 0.5
    assert abs(statistics.mean(gaps) - 5) < 0.5
    assert abs(statistics.pstdev(gaps) / statistics.mean(gaps) - 1) < 0.15, "as in an exponential distribution"


def test_everything_heals_inside_the_window() -> None:
    for seed in range(20):
        occurrences = drawn("switch-reboot: {times: 60/min, boot: 5s}, link-flap: 60/min", seed, length="10s")
        assert all(S <= occurrence.begin_ns < occurrence.end_ns <= 11 * S for occurrence in occurrences)
        assert any(occurrence.end_ns == 11 * S for occurrence in occurrences), "some were cut"


def test_the_draw_depends_on_the_seed_the_name_and_the_kind_alone() -> None:
    alone = drawn("link-flap: 6/min")
    assert drawn("link-flap: 6/min", seed=8) != alone
    with_more = drawn("link-flap: 6/min, switch-reboot: 6/min", extra="  - {at: 1s, link-down: links, for: 1s}\n")
    flaps = [occurrence for occurrence in with_more if occurrence.kind == "link-flap" and occurrence.fault == "storm"]
    assert [(one.targets, one.begin_ns, one.end_ns) for one in flaps] == [
        (one.targets, one.begin_ns, one.end_ns) for one in alone
    ]


@pytest.mark.parametrize(
    ("of", "names"),
    [
        ("h3:*", {"h3:p0-t0-1", "h3:p1-t0-1"}),
        ("[h3:p0-t0-1, p0-t0-0:p0-t1-0]", {"h3:p0-t0-1", "p0-t0-0:p0-t1-0"}),
    ],
)
def test_each_event_hits_one_of_what_is_written(of: str, names: set[str]) -> None:
    occurrences = drawn(f"link-down: {{times: 12/min, of: {of}}}")
    assert {occurrence.targets for occurrence in occurrences} == {(name,) for name in names}


def test_or_as_many_as_it_says() -> None:
    occurrences = drawn("link-down: {times: 12/min, of: any 3 of T0-T1 links}")
    assert {len(set(occurrence.targets)) for occurrence in occurrences} == {3}
    assert len({occurrence.targets for occurrence in occurrences}) > 10


def test_every_kind_but_the_controllers_has_defaults() -> None:
    assert set(parts()) == set(KINDS) - {"deny"}
    more = {"link-rate": "rate: 5mbit, ", "ev-loss": "from: h0, ", "host-slow": "per_packet: 1ms, "}
    kinds = ", ".join(f"{kind}: {{{more.get(kind, '')}times: 6/min}}" for kind in parts())
    occurrences = load_scenario_text(chaos(kinds) + "endpoint: {icrc: true}\n").occurrences
    assert {occurrence.kind for occurrence in occurrences} == set(parts())


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ("", "faults.0.chaos: needs fault kinds and their rates, such as {link-flap: 6/min"),
        ("link-flop: 6/min", "faults.0.chaos.link-flop: unknown key 'link-flop'; did you mean 'link-flap'?"),
        ("deny: 6/min", "faults.0.chaos.deny: unknown key 'deny'"),
        ("link-flap: 6", "faults.0.chaos.link-flap.times: must be how often on average, such as 6/min or 20/h; got 6"),
        ("link-flap: ", "faults.0.chaos.link-flap.times: must be how often on average"),
        ("link-flap: 0/min", "must be more than 0, such as 6/min"),
        ("link-flap: 6/week", "must be how often on average, such as 6/min or 20/h; got '6/week'"),
        ("link-flap: {of: links}", "faults.0.chaos.link-flap: the key 'times' is missing; write for example `times: 6"),
        ("link-rate: 6/min", "faults.0.chaos.link-rate: the key 'rate' is missing"),
        ("link-rate: {times: 6/min, rate: 25mbit}", "faults.0.chaos.link-rate.rate: 25mbit is outside 100kbit to"),
        ("ev-loss: {times: 6/min, from: h9}", "faults.0.chaos.ev-loss.from: there is no host 'h9'"),
        ("link-loss: {times: 6/min, at: 3s}", "faults.0.chaos.link-loss.at: unknown key 'at'"),
        ("link-loss: {times: 6/min, of: T1 switches}", "faults.0.chaos.link-loss.of: T1 switches are not allowed here"),
        ("link-loss: {times: 6/min, of: any 9 of h3:*}", "link-loss.of: asks for 9 of h3:*, and there are 2 to draw"),
        (
            "link-loss: {times: 6/min, of: [h3:*, any of h1:*]}",
            "remove `any`, or write `any 2 of` with one pattern",
        ),
        ("link-loss: {times: 6/min, of: [h3:*, h9:*]}", "faults.0.chaos.link-loss.of.1: 'h9:*' matches none of the"),
        ("link-loss: 2/s", "faults.0.chaos.link-loss.times: expects about 1200 events; the limit is 1000"),
        ("link-flap: {times: 60/min, count: 100}", "faults.0.chaos.link-flap: is more than 10000 cycles"),
        ("link-flap: {times: 6/min, period: 1ms}", "faults.0.chaos.link-flap.period: makes 500us down and 500us up"),
        ("corrupt: 1/h", "faults.0.chaos.corrupt: it would go unnoticed: the ICRC is off"),
        ("link-loss: {times: 60/min, of: h3:p0-t0-1, for: 60s}", "faults.0: needs rule 9 at the"),
    ],
)
def test_chaos_that_cannot_be(kinds: str, says: str) -> None:
    (found,) = mistakes(chaos(kinds))
    assert says in found


def test_chaos_may_not_be_there_before_the_endpoints() -> None:
    assert "faults.0.at: must be a time such as 6s" in mistakes(chaos("link-flap: 1/s", at="cold-start"))[0]


def test_chaos_must_end_before_the_time_limit() -> None:
    (found,) = mistakes(chaos("link-flap: 1/min", length="3600s", extra="time_limit: 3500s\n"))
    assert "faults.0.at: ends at 3601s, after the time limit of 3500s" in found


def test_the_port_program_is_needed_when_a_kind_is_drawn_that_needs_it() -> None:
    def needs(often: str) -> str:
        return load_scenario_text(chaos(f"link-flap: 6/min, switch-silent: {often}")).needs_port_program

    assert needs("6/min") == "fault 'storm' (switch-silent)"
    assert needs("0.0001/h") == ""
    plain = chaos("switch-silent: 0.0001/h").replace("planes: 2", "switch: plain, planes: 2")
    assert "faults.0.chaos.switch-silent: switch-silent needs the port program" in mistakes(plain)[0]


def test_what_was_drawn_is_told_and_nothing_is_not_silent() -> None:
    busy = load_scenario_text(chaos("link-flap: 6/min, switch-reboot: 6/min"))
    first, *events = random_target_lines(busy)
    counts = {
        kind: sum(occurrence.kind == kind for occurrence in busy.occurrences) for kind in ("link-flap", "switch-reboot")
    }
    assert all(f"{count} {kind}" in first for kind, count in counts.items())
    assert busy.occurrences[0].title in events[0]
    assert events[-1] == f"storm: and {len(busy.occurrences) - 8} more cycles"
    assert not list(scenario_warnings(busy))
    empty = load_scenario_text(chaos("link-flap: 0.0001/h"))
    (warning,) = scenario_warnings(empty)
    assert warning.startswith("storm: seed 3 draws nothing in 600s")
    partly = load_scenario_text(chaos("link-flap: 6/min, switch-reboot: 0.0001/h"))
    (warning,) = scenario_warnings(partly)
    assert warning.startswith("storm: seed 3 draws no switch-reboot (1.7e-05 expected) in 600s")


def test_an_ev_over_which_the_workload_sends_nothing_loses_nothing() -> None:
    """Nothing comes of such a fault, and nothing else would say so."""
    pairs = HEAD.partition("workload:")[0] + "workload: [{write: {pairs: [h0->h2, h1->h3], bytes: 9MiB}}]\n"
    line = "faults: [{{at: 1s, ev-loss: p0-t1-0, loss: 50%, from: h0, to: h{}, for: 1s, name: fog}}]\n"
    sent, not_sent = (list(scenario_warnings(load_scenario_text(pairs + line.format(to)))) for to in (2, 3))
    assert not sent
    assert not_sent == ["fog: h0 and h3 exchange nothing in the workload, so nothing can come of it"]


def test_what_is_expected_at_a_scale_is_what_is_expected_as_written() -> None:
    """Rates of chaos are written in seconds that are not scaled."""
    text = chaos("link-flap: 6/min, switch-reboot: 0.0001/h", extra="world: virtual\n")
    written, real = (list(scenario_warnings(load_scenario_text(text + more))) for more in ("", "scale: 100\n"))
    assert len(written) == 1
    assert written == real


def test_the_summary_counts_the_occurrences_of_each_kind(tmp_path: Path) -> None:
    folder = RunFolder()
    line = "{at: 1s, for: 5s, chaos: {link-flap: 60/min, switch-reboot: 60/min}, name: cut}"
    head, _, rest = folder.scenario.partition("  - {at")
    folder.scenario = head + f"  - {line}\n" + rest.partition("\n")[2]
    (row,) = fault_rows(load_record(folder.write(tmp_path)))
    scenario = load_record(tmp_path).scenario
    assert row.what == "chaos: " + ", ".join(f"{count} {kind}" for kind, count in by_kind(scenario).items())


def by_kind(scenario: Scenario) -> dict[str, int]:
    kinds = [occurrence.kind for occurrence in scenario.occurrences]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def test_editors_know_both_forms_of_a_kind() -> None:
    kinds = scenario_json_schema()["$defs"]["ChaosKinds"]["properties"]
    assert set(kinds) == set(parts())
    text, keys = kinds["link-loss"]["anyOf"]
    assert text["type"] == "string"
    assert keys["required"] == ["times"]
    assert {"times", "of", "for", "loss", "direction"} == set(keys["properties"])
