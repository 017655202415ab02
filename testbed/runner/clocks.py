"""Two clocks side by side: events are told by CLOCK_MONOTONIC, captured packets by wall time."""

from __future__ import annotations

import time
from typing import NamedTuple

_TRIES = 5


class Clocks(NamedTuple):
    """CLOCK_MONOTONIC and wall time of one moment, in ns."""

    monotonic_ns: int
    wall_ns: int


def both_clocks() -> Clocks:
    """Both now: of some tries the one in which least time passed between them."""
    tries = []
    for _ in range(_TRIES):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        tries.append((after - before, Clocks((before + after) // 2, wall)))
    return min(tries)[1]
