"""What `make soak` runs and how it judges memory (tests/soak)."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.scenario import load_scenario_text
from tests.soak.memory import growth
from tests.soak.scenario import soak_scenario


@pytest.mark.parametrize("minutes", [0.75, 3, 60, 200])
def test_a_soak_of_any_length_is_a_scenario(minutes: float) -> None:
    scenario = load_scenario_text(soak_scenario(minutes, 4))
    assert abs(scenario.estimate_ns / 1e9 - minutes * 60) < 0.25 * minutes * 60
    assert scenario.last_heal_ns < 1.2 * scenario.estimate_ns


def test_a_leak_is_seen_and_noise_is_not() -> None:
    assert not growth("leak", [(float(at), 30_000 + 50 * at) for at in range(60)]).flat
    assert growth("noise", [(float(at), 30_000 + 700 * (at % 2)) for at in range(60)]).flat
    assert growth("caches", [(float(at), 30_000 + min(at, 15) * 300) for at in range(60)]).flat
