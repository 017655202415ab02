"""A base round trip that cannot be makes a run no result; a clean step that is long is told."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.fidelity import evaluate_fidelity
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.world_time import base_rtt, clean_step
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.facts import fidelity_line
from mrc_testbed.testbed.scenario import load_scenario_text

SMALL = """
name: small
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}
workload: [{train: {hosts: all, steps: 4, compute: 20ms, allreduce: 1MiB}}]
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        folder: Path | None = run_scenario(
            load_scenario_text(SMALL), tmp_path_factory.mktemp("run"), True, PatientConsole(file=nowhere)
        ).folder
    assert folder is not None
    return load_record(folder)


def measured(record: RunRecord, base_rtt_ns: int | None, **more: Any) -> RunRecord:
    return replace(record, environment={**record.environment, "base_rtt_ns": base_rtt_ns}, **more)


def test_a_run_as_planned_is_believed(record: RunRecord) -> None:
    (rtt,), (step,) = base_rtt(record), clean_step(record)
    assert rtt.ok
    assert rtt.observed == pytest.approx(40, rel=0.05)
    assert step.observed == pytest.approx(1, abs=0.06)
    assert evaluate_fidelity(record).ok


@pytest.mark.parametrize(
    ("base_rtt_ns", "said"),
    [
        (488_000, "packets arrived before they can have, T is 40 ms: not a result about the network"),
        (37_900_000, "packets arrived before they can have"),
        (80_600_000, "hosts took 40.6 ms beside a round trip of 40 ms: not a result about the network"),
        (None, "not known: no path answered before the workload began"),
    ],
)
@pytest.mark.parametrize("world", ["virtual", "kernel"])
def test_a_round_trip_that_cannot_be_is_inconclusive(
    record: RunRecord, base_rtt_ns: int | None, said: str, world: str
) -> None:
    scenario = load_scenario_text(SMALL, overrides=[f"world={world}"])
    found = evaluate_fidelity(measured(record, base_rtt_ns, scenario=scenario))
    assert not found.ok
    assert any(said in figure.why for figure in found.figures if not figure.ok)


@pytest.mark.parametrize("base_rtt_ns", [38_100_000, 40_000_000, 58_700_000])
def test_what_the_way_explains_is_believed(record: RunRecord, base_rtt_ns: int) -> None:
    assert base_rtt(measured(record, base_rtt_ns))[0].ok


def test_without_a_delay_nothing_is_compared(record: RunRecord) -> None:
    none = load_scenario_text(SMALL, overrides=["fabric.rtt=0s"])
    assert base_rtt(measured(record, None, scenario=none)) == ()


def test_where_faults_at_the_start_broke_all_paths_nothing_is_known_and_that_is_explained(record: RunRecord) -> None:
    cold = load_scenario_text(SMALL, overrides=["faults=[{at: cold-start, link-down: 'h0:*', for: 2s}]"])
    assert any(one.cold for one in cold.occurrences)
    assert base_rtt(measured(record, None, scenario=cold))[0].ok


def beside(record: RunRecord, *changes: str) -> RunRecord:
    """The same steps, predicted for other scenarios."""
    return replace(record, scenario=load_scenario_text(SMALL, overrides=list(changes)))


LESS = "workload.0.train.allreduce=512KiB"


def test_a_clean_step_that_is_much_longer_than_predicted_is_told(record: RunRecord) -> None:
    assert [figure.why for figure in clean_step(record)] == [""]
    found = evaluate_fidelity(beside(record, LESS))
    assert "clean step over its prediction 1.66 x" in fidelity_line(found)
    assert found.ok, "congestion control may be the reason"


@pytest.mark.parametrize("change", ["transport=roce", "fabric.rtt=1ms", "virtual={busy: 100us}"])
def test_where_something_explains_it_nothing_is_told(record: RunRecord, change: str) -> None:
    (figure,) = clean_step(beside(record, LESS, change))
    assert figure.observed is not None
    assert figure.observed > 1.25
    assert figure.why == ""
