"""Ratios of few repeats: the intervals hold what they should as often as they say, and are as wide as they must be."""

from __future__ import annotations

import random
from math import exp, log
from statistics import geometric_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.compare.statistics import ALIKE, Estimate, difference, ratio, t_quantile

pytestmark = pytest.mark.slow

TRIALS = 3000
POSITIVE = st.floats(0.01, 1e9)
GROUP = st.lists(POSITIVE, min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (8, 2.306), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_quantiles_are_those_of_the_tables(freedom: float, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=6e-4)


def test_quantiles_of_fractions_lie_between_and_many_end_at_the_normal_one() -> None:
    assert t_quantile(2) < t_quantile(1.5) < t_quantile(1)
    assert 1.96 < t_quantile(10_000) < 1.975
    assert t_quantile(10_000) == t_quantile(200) < t_quantile(199.9)


def covered(sizes: tuple[int, int], spreads: tuple[float, float], truth: float = 1.3) -> float:
    """How often the interval holds the true ratio."""
    draw = random.Random(f"{sizes} {spreads}")
    hits = 0
    for _ in range(TRIALS):
        of = [exp(draw.gauss(log(truth), spreads[0])) for _ in range(sizes[0])]
        base = [exp(draw.gauss(0, spreads[1])) for _ in range(sizes[1])]
        hits += not ratio(of, base).clear_of(truth)
    return hits / TRIALS


@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (5, 5)])
@pytest.mark.parametrize("spreads", [(0.02, 0.02), (0.02, 0.1), (0.1, 0.02), (0.5, 0.5)])
@pytest.mark.nightly(keep=1)
def test_of_as_many_repeats_95_percent_hold_the_truth(sizes: tuple[int, int], spreads: tuple[float, float]) -> None:
    assert 0.93 <= covered(sizes, spreads) <= 0.99


def test_the_worst_case_is_the_one_that_the_docs_tell() -> None:
    """Few repeats of what varies much against many of what hardly varies."""
    assert 0.88 <= covered((2, 5), (0.1, 0.02)) <= 0.93


@given(GROUP, GROUP, st.floats(0.01, 100))
def test_a_ratio_follows_its_unit_and_turns_round_with_its_groups(
    of: list[float], base: list[float], unit: float
) -> None:
    found, back = ratio(of, base), ratio(base, of)
    assert found.value == pytest.approx(geometric_mean(of) / geometric_mean(base))
    assert back.value == pytest.approx(1 / found.value)
    scaled = ratio([unit * value for value in of], base)
    assert scaled.value == pytest.approx(unit * found.value)
    if found.low is not None and found.high is not None:
        assert found.low <= found.value <= found.high
        assert back.low == pytest.approx(1 / found.high)


def test_one_run_alone_has_no_interval_and_is_never_beyond_chance() -> None:
    for of, base in (([2.0], [1.0]), ([2.0, 2.1], [1.0]), ([2.0], [1.0, 1.1])):
        found = ratio(of, base)
        assert (found.low, found.high, found.clear_of(1)) == (None, None, False)
        assert "a single run" in found.why


def test_repeats_that_are_all_alike_have_no_interval() -> None:
    """Counts can be so by chance; it does not make them certain."""
    assert difference([3.0, 3.0], [0.0, 0.0]) == Estimate(3.0, why=ALIKE)
    assert difference([3.0, 3.0], [0.0, 1.0]).low is not None


def test_zeros_are_compared_by_difference() -> None:
    found = difference([10, 12, 11], [0, 0, 1])
    assert found.value == pytest.approx(32 / 3)
    assert found.clear_of(0)
