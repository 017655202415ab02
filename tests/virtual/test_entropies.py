"""What uplinks carry is what the hash says of the entropies, and source routes are even."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.entropies import by_the_hash, measured, scenario_of
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.hashed import SCENARIO


@pytest.mark.parametrize("entropies", [32, 128])
@pytest.mark.nightly(keep=1)
def test_the_busiest_uplink_carries_what_is_hashed_to_it(entropies: int) -> None:
    scenario = scenario_of(entropies, seed=3, seconds=5)
    carried, counted = measured(scenario), by_the_hash(scenario)
    assert carried.keys() == counted.keys()
    assert {t0: abs(carried[t0] - counted[t0]) < 0.04 for t0 in carried} == dict.fromkeys(carried, True)
    assert max(counted.values()) > 1.1, "chance was not even"


def test_source_routes_are_even() -> None:
    assert max(measured(scenario_of(None, seed=3, seconds=5)).values()) < 1.02


@pytest.mark.parametrize("selection", ["oblivious", "reps"])
def test_a_far_dead_link_retires_nothing_and_everything_arrives(selection: str, tmp_path: Path) -> None:
    text = SCENARIO.replace("evs_retired >= 1", "evs_retired == 0")
    sets = ["world=virtual", "endpoint.entropies=32", f"endpoint.ev_selection={selection}"]
    outcome = run_scenario(load_scenario_text(text, overrides=sets), tmp_path, quiet=True)
    assert outcome.exit_code is ExitCode.PASS, outcome.error


@pytest.mark.nightly
def test_over_srv6_too(tmp_path: Path) -> None:
    """Source routes with the selections of a rival: both work, and nothing is retired."""
    text = SCENARIO.replace("transport: mrc-hashed", "transport: mrc").replace("evs_retired >= 1", "evs_retired == 0")
    for selection in ("oblivious", "reps"):
        sets = ["world=virtual", f"endpoint.ev_selection={selection}"]
        outcome = run_scenario(load_scenario_text(text, overrides=sets), tmp_path / selection, quiet=True)
        assert outcome.exit_code is ExitCode.PASS, outcome.error
