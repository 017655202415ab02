"""When packets have arrived: the kernel stamps them by the wall clock, and protocols count by CLOCK_MONOTONIC."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK_NS = 1_000_000_000
"""The two clocks are compared as often as this, since the wall clock is slewed. It may be stepped as well, by NTP in a
machine's first minutes or when it wakes up: a stamp that cannot be has them compared at once."""
STEP_NS = 1_000_000
"""Twice what a slewed clock moves between two looks (500 ppm)."""
_READINGS = 3


def clocks_apart_ns() -> int:
    """CLOCK_MONOTONIC less wall clock. Losing the CPU between two readings makes it too small, never too large."""
    return max(time.monotonic_ns() - time.time_ns() for _ in range(_READINGS))


class ArrivalClock:
    """A packet counts as arrived `delay_ns` after its stamp, which may be some packets' time ahead (docs/switch.md).

    After a step of the wall clock stamps of before and after it come side by side: for as long as that may last, a
    packet arrives between now and `delay_ns` from now, whatever its stamp says.
    """

    def __init__(self, delay_ns: int, apart_ns: Callable[[], int] = clocks_apart_ns) -> None:
        self._delay_ns = delay_ns
        self._apart_ns = apart_ns
        self._offset_ns = 0
        self._known_until_ns = -1
        self._doubtful_until_ns = -1

    def due_ns(self, stamp_ns: int, now_ns: int) -> int:
        """When a packet with this stamp arrives, or has arrived, in ns of CLOCK_MONOTONIC."""
        if now_ns >= self._known_until_ns:
            self._look(now_ns)
        due_ns = stamp_ns + self._offset_ns
        if not now_ns - self._delay_ns <= due_ns <= now_ns + 2 * self._delay_ns:
            self._look(now_ns)
            due_ns = stamp_ns + self._offset_ns
        if now_ns < self._doubtful_until_ns:
            return min(max(due_ns, now_ns), now_ns + self._delay_ns)
        return due_ns

    def _look(self, now_ns: int) -> None:
        offset_ns = self._apart_ns() + self._delay_ns
        if self._known_until_ns >= 0 and abs(offset_ns - self._offset_ns) > STEP_NS:
            self._doubtful_until_ns = now_ns + LOOK_NS
        self._offset_ns = offset_ns
        self._known_until_ns = now_ns + LOOK_NS
