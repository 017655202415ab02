"""Which function computes which of our metrics; those of plugins have theirs in `Metric.compute`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from testbed.checks.record import RunRecord
from testbed.expect import Window

Computation = Callable[[RunRecord, Window], float | Sequence[float]]
"""A metric in its base unit (a number, bytes, ns or bytes per second): the values that its statistics are taken of,
or the one number that it is. Raises NoData with the reason where the record cannot give it."""
C = TypeVar("C", bound=Computation)

_COMPUTATIONS: dict[str, Computation] = {}
COMPUTATIONS: Mapping[str, Computation] = MappingProxyType(_COMPUTATIONS)


def computes(metric: str) -> Callable[[C], C]:
    """Mark the function that computes a metric of ours. Raises ValueError for a second one."""

    def register(compute: C) -> C:
        if metric in _COMPUTATIONS:
            raise ValueError(f"duplicate computation of {metric}")
        _COMPUTATIONS[metric] = compute
        return compute

    return register
