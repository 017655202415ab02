"""CLOCK_MONOTONIC and wall time side by side: events use the first, captured packets the second."""

from __future__ import annotations

import time
from typing import NamedTuple

_TRIES = 5


class Clocks(NamedTuple):
    """CLOCK_MONOTONIC and wall time of the same moment, in ns."""

    monotonic_ns: int
    wall_ns: int


def both_clocks() -> Clocks:
    """Both clocks now: of several readings the pair closest in time."""
    tries = []
    for _ in range(_TRIES):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        tries.append((after - before, Clocks((before + after) // 2, wall)))
    return min(tries)[1]
