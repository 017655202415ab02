"""Maps our metrics to the functions that compute them; plugins have theirs in `Metric.compute`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.expect import Window

Computation = Callable[[RunRecord, Window], float | Sequence[float]]
"""Computes a metric in its base unit (a number, bytes, ns or bytes per second): the values for its statistics, or a
single number. Raises NoData with the reason if the record cannot give it."""
C = TypeVar("C", bound=Computation)

_COMPUTATIONS: dict[str, Computation] = {}
COMPUTATIONS: Mapping[str, Computation] = MappingProxyType(_COMPUTATIONS)


def computes(metric: str) -> Callable[[C], C]:
    """Decorator for the function that computes a metric of ours. Raises ValueError for a second one."""

    def register(compute: C) -> C:
        if metric in _COMPUTATIONS:
            raise ValueError(f"duplicate computation of {metric}")
        _COMPUTATIONS[metric] = compute
        return compute

    return register
