"""What `validate --predict` prints, beside runs in virtual time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.hosts.common.bth import ICRC_BYTES
from mrc_testbed.hosts.mrc.config import FRAME_BYTES
from mrc_testbed.hosts.mrc.wire import REQUEST_BYTES, RESPONSE_BYTES
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.workloads.estimate import earliest_completion_ns, links_between

STEPS_WITHIN, MESSAGES_WITHIN = 0.06, 0.02
"""As docs/scenario.md says."""
LATE_WITHIN = 0.02
SHAPE = "fabric: {planes: 4, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 40ms}"
FLOWS = f"""
name: messages
world: virtual
{SHAPE.replace("hosts_per_t0: 2", "hosts_per_t0: 3")}
workload:
  - write: {{from: h0, to: h1, message: SIZE, depth: 1, for: 2s, name: near}}
  - write: {{from: h2, to: h3, message: SIZE, depth: 1, for: 2s, name: far}}
"""
TRAIN = f"""
name: steps
world: virtual
{SHAPE}
workload: [{{train: {{hosts: [h0, h2, h1, h3], steps: 4, warm_up: 1, parallel: {{near: 2, far: 2}}, step: [PARTS]}}}}]
"""


def ended(text: str, expectations: list[str], tmp_path: Path, *changes: str) -> RunOutcome:
    scenario = load_scenario_text(text, overrides=[*changes, f"expect={expectations}"])
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        return run_scenario(scenario, tmp_path, True, PatientConsole(file=nowhere))


def holds(text: str, expectations: list[str], tmp_path: Path, *changes: str) -> bool:
    return ended(text, expectations, tmp_path, *changes).exit_code is ExitCode.PASS


def about(figure: str, predicted_ns: float, within: float) -> list[str]:
    low, high = (round(predicted_ns * factor) for factor in (1 - within, 1 + within))
    return [f"{figure} >= {low}ns", f"{figure} <= {high}ns"]


def message_ns(scenario: Scenario, name: str) -> float:
    (flow,) = scenario.flows.named(name)
    links = links_between(scenario.shape(), flow.src, flow.dst)
    return earliest_completion_ns(scenario.shape(), flow.message_bytes, links, scenario.transport.answer_bytes)


@pytest.mark.parametrize("size", ["100B", "4KiB", "32KiB", "256KiB"])
@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["fabric.planes=1"],
        ["transport=roce"],
        ["transport=roce", "roce.failover=port", "fabric.layout=as-written"],
        ["fabric.port_rate=50mbit", "fabric.rtt=20ms"],
    ],
)
@pytest.mark.nightly(keep=8)
def test_a_message_and_its_answer_take_as_long_as_predicted(tmp_path: Path, size: str, changes: list[str]) -> None:
    text = FLOWS.replace("SIZE", size)
    scenario = load_scenario_text(text, overrides=changes)
    figures = {f"message_time.median of {name}": message_ns(scenario, name) for name in ("near", "far")}
    bounds = [bound for figure, ns in figures.items() for bound in about(figure, ns, MESSAGES_WITHIN)]
    assert holds(text, bounds, tmp_path, *changes)


PARTS = [
    ("{compute: 50ms}, {allreduce: {size: 4MiB}}", 4),
    ("{all-to-all: {size: 2MiB, over: far}}", 4),
    ("{reduce-scatter: {size: 4MiB}}, {all-gather: {size: 4MiB}}", 4),
    ("{sendrecv: {size: 1MiB}}, {allreduce: {size: 1MiB, over: far}}", 4),
    ("{pipeline: {size: 256KiB, micro_batches: 4, compute: 20ms}}", 1),  # steps in a row overlap
]
TOGETHER = "{together: [{allreduce: {size: 2MiB, over: far}}, {sendrecv: {size: 1MiB, over: near}}, {compute: 10ms}]}"


def step_bounds(text: str, within: float = STEPS_WITHIN) -> list[str]:
    scenario = load_scenario_text(text)
    return about("step_time.median", scenario.jobs[0].steps(scenario.shape()).step_ns(scenario.shape()), within)


@pytest.mark.parametrize(("parts", "steps"), PARTS)
def test_a_step_takes_as_long_as_predicted(tmp_path: Path, parts: str, steps: int) -> None:
    text = TRAIN.replace("PARTS", parts).replace("steps: 4, warm_up: 1", f"steps: {steps}")
    assert holds(text, step_bounds(text), tmp_path)


LATE = [  # where the last acknowledgement is a part that is seen
    ("[h0, h2]", "{allreduce: {size: 64KiB}}", 4),
    ("[h0, h2, h1, h3]", "{allreduce: {size: 64KiB}}", 4),
    ("[h0, h2]", "{pipeline: {size: 64KiB, micro_batches: 4, compute: 20ms}}", 1),
    ("[h0, h2, h1, h3]", "{pipeline: {size: 64KiB, micro_batches: 4, compute: 20ms}}", 1),
    ("[h0, h2, h1, h3]", "{all-to-all: {size: 64KiB}}", 4),
    ("[h0, h2, h1, h3]", "{all-gather: {size: 64KiB}}", 4),
]


@pytest.mark.parametrize(("hosts", "parts", "steps"), LATE)
def test_long_round_trips_are_in_the_prediction_to_the_last(tmp_path: Path, hosts: str, parts: str, steps: int) -> None:
    train = f"train: {{hosts: {hosts}, steps: {steps}, step: [{parts}]}}"
    text = f"name: late\nworld: virtual\n{SHAPE.replace('40ms', '200ms')}\nworkload: [{{{train}}}]\n"
    assert holds(text, step_bounds(text, LATE_WITHIN), tmp_path)


def test_data_of_one_way_are_not_slowed_by_the_last_word_of_the_other(tmp_path: Path) -> None:
    text = TRAIN.replace("PARTS", "{sendrecv: {size: 1MiB}}").replace("[h0, h2, h1, h3]", "[h0, h2]")
    text = text.replace("parallel: {near: 2, far: 2}, ", "").replace("planes: 4", "planes: 1")
    assert holds(text, step_bounds(text), tmp_path)


def test_parts_together_take_at_least_as_long_as_predicted(tmp_path: Path) -> None:
    text = TRAIN.replace("PARTS", TOGETHER)
    least, _ = step_bounds(text)
    assert holds(text, [least], tmp_path)


POD = "{clos3: {pods: 2, t0: 2, t1: 2, t2: TWO, hosts_per_t0: 2}}"
"""Eight hosts: h0 and h1 on a T0, h2 and h3 on the other one of their pod, h4 to h7 in the other pod."""
FAMILIES = {
    "three tiers": POD.replace("TWO", "4"),
    "2:1": POD.replace("TWO", "2"),
    "rails": "{rail: {rails: 2, nodes: 4, spine: 4}}",
    "slow": "{clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2, t2_speed: 50 %}}",
}
CONTENDED_WITHIN = 0.15
SLOW_WITHIN = 0.04
"""A packet may find another one on a slow link, though the ways together have room."""


def of_family(text: str, name: str) -> str:
    sizes = "t0_groups: 2, t1: 2, hosts_per_t0: 2"
    return text.replace(sizes, f"family: {FAMILIES[name]}")


@pytest.mark.parametrize("size", ["100B", "4KiB", "256KiB"])
@pytest.mark.parametrize(
    ("family", "peer", "links"),
    [
        ("three tiers", "h1", 2),
        ("three tiers", "h2", 4),
        ("three tiers", "h4", 6),
        ("slow", "h4", 8),
        ("rails", "h2", 2),
        ("rails", "h1", 4),
    ],
)
@pytest.mark.nightly(keep=3)
def test_a_message_over_any_family_takes_as_long_as_its_links(
    tmp_path: Path, size: str, family: str, peer: str, links: int
) -> None:
    write = f"{{write: {{from: h0, to: {peer}, message: {size}, depth: 1, for: 2s}}}}"
    text = f"name: message\nworld: virtual\n{of_family(SHAPE, family)}\nworkload: [{write}]\n"
    scenario = load_scenario_text(text)
    (flow,) = scenario.flows.flows
    assert links_between(scenario.shape(), flow.src, flow.dst) == links
    answer_bytes = scenario.transport.answer_bytes
    wanted_ns = earliest_completion_ns(scenario.shape(), flow.message_bytes, links, answer_bytes)
    within = SLOW_WITHIN if family == "slow" else MESSAGES_WITHIN
    assert holds(text, about("message_time.median", wanted_ns, within), tmp_path)


@pytest.mark.parametrize(
    ("family", "hosts", "part", "within"),
    [
        ("three tiers", "[h0, h4, h2, h6]", "{allreduce: {size: 4MiB}}", STEPS_WITHIN),  # each hop between pods
        ("rails", "[h0, h2, h4, h6]", "{allreduce: {size: 4MiB}}", STEPS_WITHIN),  # of one rail
        ("three tiers", "all", "{all-to-all: {size: 4MiB}}", STEPS_WITHIN),
        ("2:1", "all", "{all-to-all: {size: 4MiB}}", CONTENDED_WITHIN),
        ("rails", "all", "{all-to-all: {size: 4MiB}}", STEPS_WITHIN),
    ],
)
@pytest.mark.nightly(keep=2)
def test_a_step_over_any_family_takes_as_long_as_predicted(
    tmp_path: Path, family: str, hosts: str, part: str, within: float
) -> None:
    train = f"train: {{hosts: {hosts}, steps: 4, warm_up: 2, step: [{part}]}}"
    text = f"name: steps\nworld: virtual\n{of_family(SHAPE, family)}\nworkload: [{{{train}}}]\n"
    assert holds(text, step_bounds(text, within), tmp_path)


@pytest.mark.parametrize(("peer", "links"), [("h1", 2), ("h2", 4), ("h4", 6)])
def test_the_round_trip_of_the_warm_up_is_that_of_a_probe_over_its_links(tmp_path: Path, peer: str, links: int) -> None:
    text = f"name: near\nworld: virtual\n{of_family(SHAPE, 'three tiers')}\nworkload:\n  - write: "
    outcome = ended(f"{text}{{from: h0, to: {peer}, message: 4KiB, for: 2s}}\n", ["qp_errors == 0"], tmp_path)
    probe_bytes = 2 * (FRAME_BYTES + ICRC_BYTES) + REQUEST_BYTES + RESPONSE_BYTES
    wanted_ms = 40 + links * probe_bytes * 8 / 12_500  # a little more, as probes of both hosts meet answers
    assert outcome.base_rtt_ns is not None
    assert wanted_ms <= outcome.base_rtt_ns / 1e6 <= wanted_ms + 0.3
