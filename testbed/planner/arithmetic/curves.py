"""Effective training time over the size of a job and over flaps, a curve for each recovery: data to draw or to list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mrc_testbed.testbed.planner.arithmetic.clos import Clos, least_tiers
from mrc_testbed.testbed.planner.arithmetic.failures import Failures, PlannedJob
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery
from mrc_testbed.testbed.planner.arithmetic.reliability import LEAST_GPUS

SIZES = tuple(LEAST_GPUS * 2**power for power in range(7))
"""GPUs, 4,096 to 262,144."""
FLAPS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 14.0, 20.0, 30.0, 45.0, 60.0)
"""A minute in the job; 60 as while a network is built."""


@dataclass(frozen=True, slots=True)
class Curve:
    """`name`: of the recovery. `points`: (x, effective training time in percent), x rising. `band`: (x, low, high) for
    the same x, what the ranges of all inputs leave open."""

    name: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float, float], ...]


def effective_over_gpus(
    clos: Clos, failures: Failures, recoveries: Sequence[PathRecovery], sizes: Sequence[int] = SIZES
) -> tuple[Curve, ...]:
    """x: GPUs of a job that has a whole fabric of such planes and switches, of the fewest tiers that reach. Sizes that
    none reach are left out. Flaps grow with the job."""
    fabrics = [grown for size in sizes if (grown := _grown(clos, size))]
    return _curves(((grown.nics, PlannedJob(grown, grown.nics, failures)) for grown in fabrics), recoveries)


def effective_over_flaps(
    job: PlannedJob, recoveries: Sequence[PathRecovery], flaps: Sequence[float] = FLAPS
) -> tuple[Curve, ...]:
    """x: T0-T1 flaps a minute in the job."""
    swept = ((each, replace(job, failures=job.failures.with_flaps(_flaps(each), job.gpus))) for each in flaps)
    return _curves(swept, recoveries)


def _curves(jobs: Iterable[tuple[float, PlannedJob]], recoveries: Sequence[PathRecovery]) -> tuple[Curve, ...]:
    made = list(jobs)
    return tuple(_curve(recovery.name, [(x, job.effective(recovery)) for x, job in made]) for recovery in recoveries)


def _curve(name: str, found: Sequence[tuple[float, MarkedNumber]]) -> Curve:
    points = tuple((x, number.value) for x, number in found)
    return Curve(name, points, tuple((x, number.low, number.high) for x, number in found))


def _grown(clos: Clos, nics: int) -> Clos | None:
    tiers = least_tiers(nics, clos.ports)
    return replace(clos, tiers=tiers, nics=nics) if tiers else None


def _flaps(a_minute: float) -> MarkedNumber:
    return MarkedNumber(a_minute, "a minute", Provenance.GIVEN, "x of the curve", a_minute, a_minute)
