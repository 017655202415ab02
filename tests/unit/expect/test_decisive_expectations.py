"""Expectations that always or never hold are mistakes of the scenario, at the bound."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.expect import METRICS, Metric, parse_expectation, with_metrics
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario import load_scenario_text

STEPS = "workload: [{train: {hosts: all, steps: 9, compute: 100ms, allreduce: 1MiB}}]"
FLOWS = "workload: [{write: {pairs: [h0->h2, h1->h3], for: 4s}}]"
LATENCY = "workload: [{latency: {from: h0, to: h2, for: 2s}}]"
ARRIVALS = "workload: [{poisson: {sizes: hadoop, load: 50%, for: 2s}}]"
SCENARIO = """\
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
"""


def load(line: str, workload: str = STEPS) -> str:
    """Its only mistake; empty without one."""
    try:
        load_scenario_text(f"{SCENARIO}{workload}\nexpect:\n  - {line}\n")
    except ScenarioError as error:
        (problem,) = error.problems
        return str(problem)
    return ""


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_no_metric_of_ours_takes_a_bound_that_always_holds(metric: Metric) -> None:
    """None is below 0."""
    figure = f"{metric.name}.{metric.stats[-1]}" if metric.stats else metric.name
    unit = {Dimension.TIME: "ms", Dimension.RATE: "line"}.get(metric.dimension, "")
    workload = FLOWS if metric.job and metric.job.value == "flows" else STEPS
    workload = {"latency": LATENCY, "trace": ARRIVALS}.get(metric.flows or "", workload)
    workload += "\nmapper: {}" if metric.of_mapper else ""
    assert "always holds, so it decides nothing" in load(f"{figure} >= 0 {unit}", workload)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("unfinished >= 0", "5:19: expect.0: always holds, so it decides nothing: unfinished is at least 0 and"),
        ("unfinished >= 0", "unfinished is at least 0 and at most 4; give a bound that can fail and hold"),
        ("unfinished <= 4", "always holds"),
        ("unfinished <= 40", "always holds"),
        ("unfinished < 5", "always holds"),
        ("unfinished != 5", "always holds"),
        ("unfinished > 4", "never holds"),
        ("unfinished == 5", "never holds"),
        ("warning: unfinished >= 0", "5:28: expect.0.warning: always holds"),
        ('{mrc: "unfinished >= 0"}', "always holds"),
        ("steps_done <= 9", "at least 0 and at most 9; give a bound that can fail and hold"),
        ("steps_done >= 10", "never holds"),
        ("job_died <= 1", "always holds"),
        ("job_died >= 2", "never holds"),
        ("died_at >= 0 s", "always holds"),
        ("uplink_share.min <= 1", "always holds"),
        ("uplink_share.max >= 1", "always holds"),
        ("qp_errors < 0", "never holds"),
        ("goodput >= 0% of clean", "always holds"),
        ("step_time.p50 >= 0 x clean", "always holds"),
        ("goodput < 0 line", "never holds"),
    ],
)
def test_what_decides_nothing_is_told_with_its_place(line: str, says: str) -> None:
    assert says in load(line)


@pytest.mark.parametrize(
    "line",
    [
        "unfinished == 0",
        "unfinished <= 3",
        "unfinished >= 1",
        "steps_done >= 9",
        "job_died == 1",
        "goodput > 0 line",
        "stall.p100 <= 0 ms",
        "uplink_share.max <= 1",
        "bytes_wrong == 0",
        "wasted <= 0.02",
        "step_time.p50 <= 1.1 x clean",
    ],
)
def test_what_decides_something_is_taken(line: str) -> None:
    assert load(line) == ""


def test_of_a_balance_and_of_flows_the_range_is_known_too() -> None:
    assert "balance is at least 0 and at most 1" in load("balance <= 1", FLOWS)
    assert "unfinished is at least 0 and at most 2" in load("unfinished <= 2", FLOWS)


def test_a_metric_of_a_plugin_may_be_below_0() -> None:
    plain = Metric("drift", Dimension.COUNT, "may have either sign", compute=lambda record, window: -1.0)
    with with_metrics({"drift": plain}):
        assert parse_expectation("drift >= 0").metric.range_of(None)[0] < 0
