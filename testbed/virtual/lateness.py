"""How late the turns of a virtual host are: as late as those of a daemon on a machine that keeps time.

Without it, hosts whose timers are exact go in lock step, as no hosts do, and packets of many meet at one nanosecond.
What it models was measured on two cores (docs/worlds.md, "Late turns"): half of all turns are later than the
median, one in six later than 2.7 medians, one in a hundred later than 10, none later than 23.
"""

from __future__ import annotations

from random import Random

USUAL_NS = 100_000
"""The median of daemons on two cores: how late they wake, and half of what a turn takes."""
LEAST_SHARE_OF_T = 200
"""But no more than T divided by this: what it is at T = 20 ms, where most scenarios are."""
_BITS = 8
_FINE_BITS = 16
_ONES = [number.bit_count() for number in range(1 << _BITS)]
_HALF_ROOT = 181
"""256 / sqrt 2: the middle of a doubling."""


def usual_lateness_ns(rtt_ns: int, swift: int) -> int:
    """Default median lateness of turns, for this T and hosts that are `swift` times faster than daemons."""
    usual_ns = USUAL_NS // swift
    return min(usual_ns, rtt_ns // LEAST_SHARE_OF_T) if rtt_ns else usual_ns


class LateTurns:
    """Draws of whole numbers alone, so that they are the same on every machine."""

    def __init__(self, median_ns: int, seed: str) -> None:
        """A median of 0 makes every turn exact."""
        self._unit = median_ns * _HALF_ROOT
        self._bits = Random(seed).getrandbits

    def next_ns(self) -> int:
        """How late the next turn is: the number of ones in 8 bits says how often it doubles, 16 more where between."""
        if not self._unit:
            return 0
        drawn = self._bits(_BITS + _FINE_BITS)
        doublings = _ONES[drawn >> _FINE_BITS]
        between = (1 << _FINE_BITS) + (drawn & (1 << _FINE_BITS) - 1)
        return self._unit * between << doublings >> _FINE_BITS + 8 + _BITS // 2
