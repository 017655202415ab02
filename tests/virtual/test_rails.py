"""The story rails: what crosses the spine, by the bytes of its links, and that steps take what is predicted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.frames.run import Run, load_run
from mrc_testbed.testbed.scenario import Scenario, load_cells
from mrc_testbed.testbed.scenario.load.shipped import shipped_named
from mrc_testbed.topos.families.rail import Rail

STORY = shipped_named("stories/rails").path
STEPS = 2
SHORTER = ["world=virtual", "faults=[]", "expect=[]", f"workload.0.train.steps={STEPS}", "workload.0.train.warm_up=0"]
STEPS_WITHIN = {"crossing": 0.08, "along": 0.06}
"""As docs/scenario.md says."""


def cells() -> dict[str | None, Scenario]:
    return {cell.scenario.variant: cell.scenario for cell in load_cells(STORY, SHORTER)}


def run_of(scenario: Scenario, results: Path) -> Run:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, results, True, PatientConsole(file=nowhere))
    assert outcome.folder
    return load_run(outcome.folder)


def spine_bytes(run: Run) -> int:
    """What rail switches sent up, from the workload's start on."""
    sent = run.samples[run.samples["node"].str.contains("-t0-") & run.samples["port"].str.startswith("up")]
    ports = sent[sent["t_s"] >= 0].groupby(["node", "port"])["tx_bytes"]
    return int((ports.last() - ports.first()).sum())


@pytest.mark.parametrize(("variant", "share"), [("crossing", 3 / 4), ("along", 0), ("along-thin", 0)])
@pytest.mark.nightly(keep=1)
def test_three_quarters_cross_the_spine_or_nothing(variant: str, share: float, tmp_path: Path) -> None:
    run = run_of(cells()[variant], tmp_path)
    sent = run.steps["bytes"].sum()
    # All chunks between nodes; headers and acknowledgements come on top, and of the first sample something is missing.
    assert sent == STEPS * 16 * 12 * 96 * 1024
    assert share * sent <= spine_bytes(run) <= 1.07 * share * sent


@pytest.mark.parametrize("variant", STEPS_WITHIN)
@pytest.mark.nightly(keep=1)
def test_a_step_takes_what_is_predicted(variant: str, tmp_path: Path) -> None:
    scenario = cells()[variant]
    predicted = scenario.jobs[0].steps(scenario.shape()).step_ns(scenario.shape())
    steps = run_of(scenario, tmp_path).steps["duration_s"]
    assert steps.iloc[-1] * 1e9 == pytest.approx(predicted, rel=STEPS_WITHIN[variant])


def test_the_cells_differ_in_the_spine_and_in_the_way_alone() -> None:
    found = cells()
    families = {variant: one.fabric.family for variant, one in found.items()}
    assert families["crossing"] == families["along"] == Rail(4, 4, 4)
    assert families["crossing-thin"] == families["along-thin"] == Rail(4, 4, 2)
    of_all = {variant: one.jobs[0].steps(one.shape()).collectives[0][0].sent_bytes for variant, one in found.items()}
    assert len(set(of_all.values())) == 1
