"""The story faster-compute: a step takes C + N, or the longer of both where they overlap, however short C gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.scenario import Scenario, load_cells, load_scenario_text
from mrc_testbed.testbed.scenario.load.shipped import shipped_named
from tests.virtual.test_predictions import about, holds

STORY = shipped_named("stories/faster-compute").path
WITHIN = 0.02
MS = 1_000_000
COMPUTE_MS = (800, 400, 200, 100)
RATES = {"whole": "40mbit", "half": "20mbit"}
PARTS = {"sum": "{compute: C}, {sendrecv: {size: 4MiB}}", "max": "{together: [{compute: C}, {sendrecv: {size: 4MiB}}]}"}


def network_ns(scenario: Scenario) -> float:
    """Of a step that computes nothing."""
    return scenario.jobs[0].steps(scenario.shape()).step_ns(scenario.shape())


def text_of(variant: str, how: str, compute_ms: int, steps: int = 3) -> str:
    fabric = f"{{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: {RATES[variant]}, rtt: 40ms}}"
    parts = PARTS[how].replace("C}", f"{compute_ms}ms}}")
    return f"name: a\nworld: virtual\nfabric: {fabric}\nworkload: [{{train: {{steps: {steps}, step: [{parts}]}}}}]\n"


@pytest.mark.parametrize("variant", RATES)
@pytest.mark.parametrize("how", PARTS)
@pytest.mark.parametrize("compute_ms", COMPUTE_MS)
@pytest.mark.nightly(keep=1)
def test_a_step_takes_what_its_closed_form_says(tmp_path: Path, variant: str, how: str, compute_ms: int) -> None:
    network = network_ns(load_scenario_text(text_of(variant, "sum", 0).replace("{compute: 0ms}, ", "")))
    compute = compute_ms * MS
    wanted = compute + network if how == "sum" else max(compute, network)
    assert holds(text_of(variant, how, compute_ms), about("step_time.median", wanted, WITHIN), tmp_path)


def test_the_story_asks_for_what_is_tested_here() -> None:
    cells = load_cells(STORY)
    assert len(cells) == 16
    first = cells[0].scenario
    assert network_ns(first) - 800 * MS == pytest.approx(network_ns(load_scenario_text(text_of("whole", "sum", 0))))


def test_what_a_slower_network_costs_grows_as_compute_shrinks() -> None:
    """By the closed form: 1 + e (k - 1) with e the share of a step that waits, if all of N grew k times."""
    whole, half = (network_ns(load_scenario_text(text_of(variant, "sum", 0))) for variant in RATES)
    costs = [(ms * MS + half) / (ms * MS + whole) for ms in COMPUTE_MS]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(1.21, abs=0.01)
    assert costs[-1] == pytest.approx(1.61, abs=0.01)
    for ms, cost in zip(COMPUTE_MS, costs, strict=True):
        exposed = whole / (ms * MS + whole)
        assert cost == pytest.approx(1 + exposed * (half / whole - 1))
