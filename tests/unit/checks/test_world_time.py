"""A base round trip that or a clean step that cannot be makes a run no result."""

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
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.facts import fidelity_line
from mrc_testbed.testbed.rundir.lines import Party
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


def test_probes_that_wait_for_each_other_on_a_thin_plane_are_believed(record: RunRecord) -> None:
    thin = load_scenario_text(SMALL, overrides=["fabric.rtt=1ms"])
    assert base_rtt(measured(record, 80_600_000, scenario=thin))[0].ok
    assert not base_rtt(measured(record, 100_000, scenario=thin))[0].ok


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


def test_a_clean_step_that_is_longer_than_predicted_is_told(record: RunRecord) -> None:
    assert [figure.why for figure in clean_step(record)] == [""]
    found = evaluate_fidelity(beside(record, LESS))
    assert "clean step over its prediction 1.6" in fidelity_line(found)
    assert found.ok, "the transport is ours"
    (figure,) = clean_step(beside(record, LESS))
    assert figure.why.startswith("no step that nothing disturbed took less than ")


@pytest.mark.parametrize(
    "change",
    [
        "transport=roce",
        "fabric.rtt=1ms",
        "virtual={busy: 100us}",
        "endpoint.mpr=4",
        "mapper={}",
        "workload.0={train: {steps: 4, step: [{together: [{compute: 1ms}, {allreduce: {size: 512KiB}}]}]}}",
    ],
)
def test_where_something_explains_it_nothing_is_told(record: RunRecord, change: str) -> None:
    (figure,) = clean_step(beside(record, LESS, change))
    assert figure.observed is not None
    assert figure.observed > 1.25
    assert figure.why == ""


OWN = """
from dataclasses import replace
from mrc_testbed.api import TRANSPORTS
from mrc_testbed.hosts.mrc.transport import mrc

def make(request, plugins, wiring):
    request._fields["port_rate_bps"] = request.number("port_rate_bps") * {percent} // 100
    return mrc(request, plugins, wiring)

MRC = TRANSPORTS["mrc"]
TRANSPORT = replace(MRC, word="own", protocol="own", endpoint="make", cost=replace(MRC.cost, of="own"))
PLUGIN = {{"transport": {{"own": TRANSPORT}}}}
"""


@pytest.mark.parametrize(("percent", "believed"), [(100, True), (80, False)])
def test_a_transport_that_is_slow_for_no_reason_is_no_result(tmp_path: Path, percent: int, believed: bool) -> None:
    (tmp_path / "own.py").write_text(OWN.format(percent=percent), encoding="utf-8")
    scenario = load_scenario_text(SMALL, overrides=[f"plugins=[{tmp_path / 'own.py'}]", "transport=own"])
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, tmp_path / "runs", True, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    (figure,) = clean_step(load_record(outcome.folder))
    assert figure.ok is believed
    assert (outcome.exit_code is ExitCode.PASS) is believed
    if not believed:
        assert figure.who is Party.PROGRAM
        assert "what the transport waits for" in figure.next_step
