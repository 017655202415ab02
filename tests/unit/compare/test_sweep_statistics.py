"""Groups on several machines: a slow machine is no difference between groups."""

from __future__ import annotations

from math import isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.compare.statistics import (
    ALIKE,
    Estimate,
    blocked_difference,
    blocked_ratio,
    difference,
    shared,
)

values = st.lists(st.floats(1, 100), min_size=2, max_size=5)


@given(values, values)
def test_on_one_machine_it_is_the_difference_of_means(of: list[float], base: list[float]) -> None:
    assert isclose(blocked_difference({"a": of}, {"a": base}).value, difference(of, base).value, abs_tol=1e-9)


@given(values, values, st.floats(-1000, 1000))
def test_a_slower_machine_changes_nothing(of: list[float], base: list[float], slower: float) -> None:
    usual = blocked_difference({"a": of, "b": of}, {"a": base, "b": base})
    moved = blocked_difference(
        {"a": of, "b": [one + slower for one in of]}, {"a": base, "b": [one + slower for one in base]}
    )
    assert usual.value == pytest.approx(moved.value, abs=1e-6)
    if usual.low is not None and moved.low is not None:
        assert usual.low == pytest.approx(moved.low, abs=1e-5)


def test_one_run_of_each_group_on_each_machine_is_the_paired_t_test() -> None:
    """Differences 1, 2 and 3: mean 2, standard error 1 / sqrt(3), Student's t of 2 degrees of freedom 4.303."""
    found = blocked_difference({"a": [11], "b": [22], "c": [33]}, {"a": [10], "b": [20], "c": [30]})
    assert found.value == pytest.approx(2)
    assert found.low == pytest.approx(2 - 4.3027 / 3**0.5, abs=1e-3)


def test_ratios_are_of_logarithms() -> None:
    found = blocked_ratio({"a": [2.0, 2.2], "b": [20.0, 22.0]}, {"a": [1.0, 1.1], "b": [10.0, 11.0]})
    assert found.value == pytest.approx(2)
    assert found.low is not None
    assert log(found.low) < log(2) < log(found.high or 0)


def test_a_machine_with_one_group_alone_says_nothing() -> None:
    both = ({"a": [2.0, 3.0]}, {"a": [1.0, 2.0]})
    assert blocked_difference({**both[0], "b": [99.0]}, both[1]) == blocked_difference(*both)
    assert not shared({"a": [1.0]}, {"b": [1.0]})


def test_two_single_runs_give_no_interval() -> None:
    assert blocked_difference({"a": [2.0]}, {"a": [1.0]}).low is None


def test_zeros_alone_are_alike() -> None:
    assert blocked_difference({"a": [0.0, 0.0], "b": [0.0]}, {"a": [0.0], "b": [0.0]}) == Estimate(0.0, why=ALIKE)
