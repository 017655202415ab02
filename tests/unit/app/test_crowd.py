"""The second part of a calibration: 64 hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app import crowd as app
from mrc_testbed.testbed.app.crowd import HOSTS, MOST_RUNS, crowd_shape, crowd_text, likely_pps, measure_crowd
from mrc_testbed.testbed.calibration import Step
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.topos.budget import Capacity
from mrc_testbed.topos.cost import STANDARD_COST, cpus, full_load

MACHINE = Capacity(30_000, "calibrated")


def carries(monkeypatch: pytest.MonkeyPatch, true_pps: float) -> None:
    """A machine on which 64 hosts carry that and nothing more."""
    monkeypatch.setattr(app, "run_load", lambda pps, _: (Step(pps, pps <= true_pps, 0.1, "", ""), ""))


@given(st.floats(2_000, 100_000))
def test_a_load_is_a_scenario_in_which_all_send_and_nobody_waits(pps: float) -> None:
    scenario = load_scenario_text(crowd_text(pps))
    load = offered_load(scenario)
    assert (load.hosts, load.congested_pps) == (HOSTS, 0)
    assert load.pps == pytest.approx(pps, rel=0.01)
    assert scenario.shape().plane_bdp_packets >= 14


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9, 1.0, 1.2])
def test_the_budget_of_64_hosts_is_what_they_carried_to_a_tenth(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    true_pps = likely_pps(MACHINE) * share
    carries(monkeypatch, true_pps)
    told: list[Step] = []
    found = measure_crowd(MACHINE, told.append)
    assert (list(found.steps), found.hosts) == (told, HOSTS)
    assert len(told) <= MOST_RUNS
    shape = crowd_shape(true_pps)
    takes = cpus(shape, full_load(shape), replace(STANDARD_COST, crowd=found.crowd))
    assert 1 - 1e-3 <= takes / MACHINE.cpus <= 1.2
    if share > 0.5:
        assert takes / MACHINE.cpus <= 1.1


def test_where_none_is_carried_the_least_load_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    carries(monkeypatch, 0)
    found = measure_crowd(MACHINE, lambda _: None)
    assert found.pps == min(step.offered_pps for step in found.steps)
    assert found.crowd > STANDARD_COST.crowd


def test_a_machine_for_which_many_hosts_are_no_burden_pays_nothing_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    carries(monkeypatch, 1e9)
    assert measure_crowd(MACHINE, lambda _: None).crowd == 0
