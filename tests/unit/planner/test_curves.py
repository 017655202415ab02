"""Effective training time over size and over flaps: falling curves, the faster recovery never below the slower."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.curves import FLAPS, SIZES, Curve, effective_over_flaps, effective_over_gpus
from mrc_testbed.testbed.planner.arithmetic.failures import PlannedJob, listed_failures
from mrc_testbed.testbed.planner.arithmetic.parts import load_parts
from mrc_testbed.testbed.planner.arithmetic.recoveries import listed_recoveries

PARTS = load_parts()
FAILURES = listed_failures(PARTS.failures)
RECOVERIES = listed_recoveries(PARTS.recovery, PARTS.failures["rtt"])
TWO = Clos(planes=8, tiers=2, ports=512, nics=131_072)
OVER_GPUS = effective_over_gpus(TWO, FAILURES, RECOVERIES)
OVER_FLAPS = effective_over_flaps(PlannedJob(TWO, TWO.nics, FAILURES), RECOVERIES)


@pytest.mark.parametrize(("curves", "xs"), [(OVER_GPUS, SIZES), (OVER_FLAPS, FLAPS)])
def test_a_curve_for_each_recovery_over_all_of_x(curves: tuple[Curve, ...], xs: tuple[float, ...]) -> None:
    assert [curve.name for curve in curves] == [recovery.name for recovery in RECOVERIES]
    assert all(tuple(x for x, _ in curve.points) == xs for curve in curves)


@pytest.mark.parametrize("curve", [*OVER_GPUS, *OVER_FLAPS])
def test_curves_fall_and_lie_in_their_band(curve: Curve) -> None:
    assert all(before >= after for (_, before), (_, after) in pairwise(curve.points))
    for (x, value), (at, low, high) in zip(curve.points, curve.band, strict=True):
        assert x == at
        assert 0 <= low <= value <= high <= 100


@pytest.mark.parametrize("curves", [OVER_GPUS, OVER_FLAPS])
def test_a_slower_recovery_is_never_better(curves: tuple[Curve, ...]) -> None:
    for faster, slower in pairwise(curves):
        assert all(one >= other for (_, one), (_, other) in zip(faster.points, slower.points, strict=True))


def test_without_flaps_all_are_nearly_the_same() -> None:
    *survived, ended = (curve.points[0][1] for curve in OVER_FLAPS)
    assert max(survived) - min(survived) < 0.25
    assert ended < min(survived) - 5, "lost ports end a job whose paths come back after the retries of NICs"


def test_both_curves_meet_at_the_planned_job() -> None:
    over_gpus = [dict(curve.points)[131_072] for curve in OVER_GPUS]
    assert over_gpus == pytest.approx([dict(curve.points)[14] for curve in OVER_FLAPS])


def test_sizes_that_no_fabric_reaches_are_left_out() -> None:
    small = effective_over_gpus(Clos(planes=1, tiers=2, ports=16, nics=64), FAILURES, RECOVERIES)
    assert [x for x, _ in small[0].points] == [4096, 8192]


def test_a_fabric_that_grows_gets_the_tiers_that_it_needs() -> None:
    small = Clos(planes=1, tiers=3, ports=64, nics=65_536)
    grown = PlannedJob(Clos(planes=1, tiers=4, ports=64, nics=131_072), 131_072, FAILURES)
    curve = effective_over_gpus(small, FAILURES, RECOVERIES[2:3], [131_072])[0]
    assert curve.points == ((131_072, grown.effective(RECOVERIES[2]).value),)
