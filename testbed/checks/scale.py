"""Units in which a figure is shown beside its bound. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Absolute, Expectation
from mrc_testbed.testbed.expect.vocabulary import LINE, RTT, UNITS, Dimension
from mrc_testbed.testbed.workloads.fairness import line_rate

MBPS = "Mb/s"
"""The unit in which people see rates, as charts and the live display have them: payload against port rates."""
GBPS = "Gb/s"
GBPS_FROM = 10
"""Gb/s from which on rates are those of real ports."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit and its size in base units."""

    unit: str
    factor: float


def unit_factor(dimension: Dimension, unit: str, record: RunRecord) -> float:
    """Base units in one `unit`. Raises NoData for `rtt` in a run without a measured base RTT."""
    if unit == LINE:
        return line_rate(record.scenario.shape())
    if unit != RTT:
        return UNITS[dimension][unit]
    if not record.base_rtt_ns:
        raise NoData("the base RTT was not measured in warm-up")
    return record.base_rtt_ns


def scale_for(wanted: Expectation, limit: float, record: RunRecord) -> Scale:
    """The unit of the written bound; for a bound relative to clean one that suits its size."""
    dimension = wanted.metric.dimension
    if isinstance(wanted.bound, Absolute) and wanted.bound.unit:
        unit = wanted.bound.unit
        return Scale(unit, unit_factor(dimension, unit, record))
    return usual_scale(dimension, limit)


def usual_scale(dimension: Dimension, size: float) -> Scale:
    """A readable unit for an amount of about `size` base units."""
    if dimension is Dimension.TIME:
        # What would round to 1000 ms is better shown as 1 s.
        if size >= 999.5e6:
            return Scale("s", 1e9)
        return Scale("us", 1e3) if 0 < size < 999.5e3 else Scale("ms", 1e6)
    if dimension is Dimension.RATE:
        gbit = UNITS[dimension]["gbit"]
        return Scale(GBPS, gbit) if size >= GBPS_FROM * gbit else Scale(MBPS, UNITS[dimension]["mbit"])
    return Scale("B" if dimension is Dimension.BYTES else "", 1)


def amount(dimension: Dimension, value: float) -> str:
    """A value in base units with a suitable unit: `912 ms`."""
    scale = usual_scale(dimension, value)
    return f"{number(value / scale.factor)} {scale.unit}".rstrip()


def with_rtts(ns: float, rtt_ns: int | None, unit: str = "rtt") -> str:
    """A time, and behind it how many round trips that is, where their length is known: `912 ms, 4.3 rtt`."""
    return amount(Dimension.TIME, ns) + (f", {number(ns / rtt_ns)} {unit}" if rtt_ns else "")


def number(value: float, digits: int = 3) -> str:
    """The value with `digits` significant digits; whole numbers whole; `nan` and `inf` as programs print them."""
    if not isfinite(value):
        return str(value)
    if value == int(value) or abs(value) >= 10 ** (digits - 1):
        return str(round(value))
    return f"{value:.{digits}g}"
