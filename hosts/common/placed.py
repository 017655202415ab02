"""Payload bytes placed in the region of a QP, counted by the packet, each once."""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER


class PlacedBytes:
    """A count that is read stretch by stretch: `take` returns what arrived before the mark and sets the next mark.

    Turns of a daemon are up to T/10 apart, so a count read in a turn would hold bytes of the next stretch. The time of
    arrival tells them apart.
    """

    __slots__ = ("_before", "_later", "_mark_ns")

    def __init__(self) -> None:
        self._before = 0
        self._later = 0
        self._mark_ns = NEVER

    def note(self, size: int, arrival_ns: int) -> None:
        """These bytes were placed; their packet arrived then."""
        if arrival_ns < self._mark_ns:
            self._before += size
        else:
            self._later += size

    def take(self, mark_ns: int) -> int:
        """Bytes since the last call that arrived before the mark that it set. From now on the mark is `mark_ns`."""
        found = self._before
        self._before, self._later, self._mark_ns = self._later, 0, mark_ns
        return found
