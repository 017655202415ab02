"""How late turns of virtual hosts are: as on a machine that keeps time, and the same on every one."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.virtual.lateness import USUAL_NS, LateTurns, usual_lateness_ns

MOST = 23
"""Medians that the latest turn can be late."""


def drawn(number: int = 20_000, median_ns: int = USUAL_NS, seed: str = "1 h0") -> list[int]:
    late = LateTurns(median_ns, seed)
    return [late.next_ns() for _ in range(number)]


def test_the_same_seed_draws_the_same_numbers_for_ever() -> None:
    assert drawn(5) == [119226, 72350, 440280, 14226, 16903]
    assert drawn(5, seed="1 h1") != drawn(5)


def test_half_are_later_than_the_median_and_one_in_a_hundred_by_far() -> None:
    found = sorted(drawn())
    assert found[10_000] == pytest.approx(USUAL_NS, rel=0.1)
    assert 8 * USUAL_NS < found[19_800] < 12 * USUAL_NS
    assert found[-1] < MOST * USUAL_NS


def test_without_a_median_every_turn_is_exact() -> None:
    assert drawn(5, median_ns=0) == [0] * 5


@pytest.mark.parametrize(
    ("rtt_ns", "speed", "median_ns"),
    [(40_000_000, 1, 100_000), (500_000_000, 1, 100_000), (20_000_000, 1, 100_000), (2_000_000, 1, 10_000),
     (5_000, 8000, 12), (5_000, 1, 25), (0, 1, 100_000)],
)  # fmt: skip
def test_turns_are_as_late_for_their_round_trip_at_every_scale(rtt_ns: int, speed: int, median_ns: int) -> None:
    assert usual_lateness_ns(rtt_ns, speed) == median_ns
