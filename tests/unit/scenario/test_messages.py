"""What people write who know other languages, and what they are told then."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from tests.unit.scenario.test_mistakes import HEAD, LINK, mistakes

CUT = f"faults:\n  - {{at: 1s, link-down: '{LINK}', for: 1s, name: cut}}\n"


@pytest.mark.parametrize(
    ("expectation", "place", "told"),
    [
        ("step_time.p100 <= 2s during clean", 33, "leave `during` out"),
        ("step_time.p100 <= 1.5 * clean.median", 27, "write x"),
        ("step_time.p100 <= clean.median", 23, "`1 x clean`"),
        ("step_time.p100 during cut <= 2s", 20, "the window comes last"),
        ("goodput >= 1 MiB/s of h3", 24, "`of` comes right after the metric"),
        ("recovery.p100 <= 3 RTT", 24, "did you mean 'rtt'?"),
        ("p100 step_time <= 3s", 5, "`step_time.p100`"),
        ("step_time.p98 <= 3s", 15, "unknown statistic 'p98'"),
    ],
)
def test_an_expectation_written_otherwise(expectation: str, place: int, told: str) -> None:
    (mistake,) = mistakes(f"{HEAD}{CUT}expect:\n  - {expectation}\n")
    assert mistake.startswith(f"s.yaml:9:{place}: expect.0: ")
    assert told in mistake


@pytest.mark.parametrize("stat", ["p50", "p90", "p95", "p99", "p99.9", "p100"])
def test_percentiles_can_be_asked_for(stat: str) -> None:
    scenario = load_scenario_text(f"{HEAD}{CUT}expect: [step_time.{stat} <= 1.5 x clean.{stat}]\n")
    assert scenario.expect[0].stat == stat
    assert str(scenario.expect[0]) == f"step_time.{stat} <= 1.5 x clean.{stat}"


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        (f"{HEAD}faults:\n  - {{at: 1s, link-down: *-t1-0, for: 1s}}\n", "7:25", 'must be in quotes: "*-t1-0"'),
        (f"{HEAD}faults:\n  - at: 1s\n    link-down: *\n    for: 1s\n", "8:17", 'must be in quotes: "*"'),
        (f"{HEAD}faults:\n  - at: 1s\n    link-down: links\n   for: 1s\n", "9:4", "3 spaces here, 4 spaces in line 8"),
        ("name: small\n\n# so\n fabric: {planes: 2}\n", "4:2", "1 space here, no spaces in line 1"),
        ("name: x\nworkload:\n- train:\n   steps: 3\n    compute: 1s\n", "5:12", "4 spaces here, 3 spaces in line 4"),
        ("name: x\nworkload:\n  - train: {steps: 3\nfaults: []\n", "4:7", "'{' of line 3 is not closed"),
        ("name: x: y\n", "1:8", "put the value in quotes"),
        (f"{HEAD}endpoint: {{icrc: !!bool yes}}\n", "6:18", "must be true or false, or text in quotes; got yes"),
        (f"%YAML 1.1\n---\n{HEAD}endpoint: {{icrc: on}}\n", "8:18", "must be true or false, or text in quotes; got on"),
        ("name: small\nworkload:\n  -train: {steps: 3}\n", "3:3", "a space after its dash: `- train`"),
        (f"{HEAD}faults:\n  - {{at: 1s, frobnicate: p0, for: 1s}}\n", "7:14", "'frobnicate'; there are link-down"),
    ],
)
def test_yaml_that_means_something_else(text: str, place: str, told: str) -> None:
    mistake = mistakes(text)[0]
    assert mistake.startswith(f"s.yaml:{place}: ")
    assert told in mistake


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{HEAD}ecmp: {{seed: }}\n", "ecmp.seed"),
        (f"{HEAD}virtual: {{lateness: }}\n", "virtual.lateness"),
        (f"{HEAD}paper:\n", "paper"),
        (
            f"{HEAD}faults: [{{at: 1s, transceiver-flap: p0-t0-0, period: 1s, count: 2, ports: }}]\n",
            "faults.0.ports",
        ),
    ],
)
def test_a_key_without_a_value_is_a_mistake(text: str, key: str) -> None:
    (mistake,) = mistakes(text)
    assert f": {key}: has no value; write one, such as " in mistake


@pytest.mark.parametrize(
    ("fault", "unmet"),
    [
        (f"link-down: '{LINK}'", True),
        ("link-down: 'h3:p0-t0-1'", True),
        ("link-down: 'h0:p0-t0-0'", False),
        ("link-loss: T0-T1 links, loss: 1%", True),
        ("switch-silent: p0-t1-1", True),
        ("switch-silent: p0-t0-0", False),
        ("link-rate: [h0:p0-t0-0, h3:p0-t0-1], rate: 1mbit", False),
    ],
)
def test_a_fault_that_no_packet_can_meet_is_warned_of(fault: str, unmet: bool) -> None:
    flows = "workload: [{write: {pairs: [h0->h1], for: 9s}}]\n"
    text = HEAD.partition("workload:")[0] + flows + f"faults: [{{at: 1s, {fault}, for: 1s, name: cut}}]\n"
    warned = list(scenario_warnings(load_scenario_text(text)))
    assert [line.startswith("cut: no packet of the workload passes ") for line in warned] == [True] * unmet
