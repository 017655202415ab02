"""The story three-tiers: its fabrics are those of the planner, and dead switches cost what arithmetic says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.finished import FinishedRun
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.effects import one_way_latency
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import Scenario, load_cells
from mrc_testbed.testbed.scenario.load.shipped import shipped_named
from mrc_testbed.testbed.workloads.fairness import line_rate

STORY = shipped_named("stories/three-tiers").path
SLOWER = 10_000
"""Round trips here over those of the planner."""
PLANNED = {"two-tiers": Clos(4, 2, 16, 128), "three-tiers": Clos(1, 3, 4, 16)}
LEFT = {
    "two-tiers": {"9s to 12s": 1, "17s to 20s": 7 / 8, "25s to 28s": 3 / 4},
    "three-tiers": {"9s to 12s": 3 / 4, "17s to 20s": 3 / 4},  # half of half of the hosts
}
"""Of line rate in the mean of the flows, two seconds after a switch died: of a tier more each time."""


def cell(variant: str) -> Scenario:
    (found,) = (one.scenario for one in load_cells(STORY, ["world=virtual"]) if one.scenario.variant == variant)
    return found


@pytest.mark.parametrize("variant", PLANNED)
def test_the_fabrics_are_the_planners(variant: str) -> None:
    shape, planned = cell(variant).shape(), PLANNED[variant]
    assert {len(way) for way in shape.family.ways(0, shape.family.t0_of(8))} == {planned.longest_path}
    assert shape.rtt_ns == pytest.approx(2e3 * SLOWER * one_way_latency(planned, *load_parts().latency).value, rel=0.01)
    assert (shape.planes, shape.family.hosts, planned.most_nics) == (planned.planes, 16, planned.nics)
    assert shape.planes * shape.port_rate_bps == 14_000_000


@pytest.mark.parametrize("variant", LEFT)
@pytest.mark.nightly
def test_a_dead_switch_costs_what_arithmetic_says(variant: str, tmp_path: Path) -> None:
    scenario = cell(variant)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        done = FinishedRun(run_scenario(scenario, tmp_path, True, PatientConsole(file=nowhere)))
    assert done.verdict == "pass"
    line = line_rate(scenario.shape())
    means = {times: done.metric(f"flow_goodput.mean from {times}", "B/s") / line for times in LEFT[variant]}
    assert means == pytest.approx(LEFT[variant], rel=0.06)
