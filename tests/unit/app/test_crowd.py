"""The second part of a calibration: 64 hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app import crowd as app
from mrc_testbed.testbed.app.calibrate import CLOSE_ENOUGH, HOLDS, confirm
from mrc_testbed.testbed.app.crowd import MOST_LOADS, crowd_text, likely_pps, try_crowd
from mrc_testbed.testbed.calibration import MARGIN, Calibration, CarriedLoad, Crowd, Step
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.topos.cost import STANDARD_COST, cpus, full_load
from mrc_testbed.topos.crowd import CROWD_HOSTS, crowd_shape

TRAINING_PPS = 30_000.0


def measured(monkeypatch: pytest.MonkeyPatch, true_pps: float) -> tuple[Calibration, list[Step]]:
    """Of a machine on which 64 hosts carry that and nothing more, and a training TRAINING_PPS."""
    monkeypatch.setattr(app, "run_load", lambda pps, _: (Step(pps, pps <= true_pps, 0.2, "", ""), ""))
    told: list[Step] = []
    trials = try_crowd(TRAINING_PPS, told.append)
    confirm((trials,))
    assert trials.steps == told
    training = CarriedLoad("2026-11-28", "", (Step(TRAINING_PPS, True, 0.2, ""), Step(33_000, False, 0, "")))
    return Calibration("", "", 2, {"mrc": training}, Crowd("2026-11-28", CROWD_HOSTS, tuple(told))), told


@given(st.floats(2_000, 100_000))
def test_a_load_is_a_scenario_in_which_all_send_and_nobody_waits(pps: float) -> None:
    scenario = load_scenario_text(crowd_text(pps))
    load = offered_load(scenario)
    assert (load.hosts, load.congested_pps) == (CROWD_HOSTS, 0)
    assert load.pps == pytest.approx(pps, rel=0.01)
    assert scenario.shape().plane_bdp_packets >= 14


@pytest.mark.parametrize("share", [0.6, 0.7, 0.9, 1.0, 1.2])
def test_the_budget_of_64_hosts_is_what_they_carried_to_a_tenth(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    true_pps = likely_pps(TRAINING_PPS) * share
    found, told = measured(monkeypatch, true_pps)
    assert len(told) <= 2 * MOST_LOADS + HOLDS
    capacity, shape = found.capacity(STANDARD_COST), crowd_shape(true_pps)
    takes = cpus(shape, full_load(shape), capacity.cost)
    assert capacity.cpus * MARGIN * 0.99 <= takes <= capacity.cpus * MARGIN * CLOSE_ENOUGH * 1.03
    assert takes <= capacity.most_cpus * 1.01


def test_where_none_is_carried_the_least_load_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found, told = measured(monkeypatch, 0)
    assert found.crowd is not None
    assert found.crowd.pps * MARGIN == pytest.approx(min(step.offered_pps for step in told))
    assert found.crowding > STANDARD_COST.crowd


def test_a_machine_for_which_many_hosts_are_no_burden_pays_nothing_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, 1e9)[0].crowding == 0
