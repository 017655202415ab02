"""The statistics of the expectation language, and values by what they have in common. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, isnan, nan
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def statistic(values: Sequence[float], stat: str) -> float:
    """One statistic of at least one value: `last min mean median max`, or a percentile such as `p50` or `p99.9`.

    `median` and `p50` are the middle value, or the mean of the two middle ones; other percentiles are the nearest
    rank, that is, a value that occurred. Of values with NaN among them everything but the last one is NaN.
    """
    if stat != "last" and any(map(isnan, values)):
        return nan
    if stat in ("median", "p50"):
        return float(statistics.median(values))
    if stat == "last":
        return float(values[-1])
    if stat == "mean":
        return float(statistics.fmean(values))
    if stat in ("max", "min"):
        return float(max(values) if stat == "max" else min(values))
    return nearest_rank(values, stat.removeprefix("p"))


def nearest_rank(values: Sequence[float], percent: str | int) -> float:
    """The smallest value that at least `percent` of all values do not exceed."""
    ranked = sorted(values)
    rank = ceil(Fraction(percent) * len(ranked) / 100)  # of 1000 values 99.9 % are 999, and 1000 with floats
    return float(ranked[max(1, rank) - 1])


def gathered(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, in their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
