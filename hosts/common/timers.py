"""One queue of wake-ups. Each owner has at most one that counts, and says on waking when it wants the next."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

NEVER = (1 << 62) - 1
"""Later than any time; int, so that it compares like one, and the largest that machine code has without an object."""


class TimerOwner(Protocol):
    """Something with a next wake-up."""

    wake_ns: int

    def on_timer(self, now_ns: int) -> int:
        """Do what is due; return the next deadline or NEVER."""
        ...


class Timers:
    """Deadlines only ever move *later* on the hot path (each packet puts the timeout off), and nobody tells the queue:
    the owner wakes at the old time, sees that nothing is due and asks again. So a packet costs no queue operation.
    """

    __slots__ = ("_heap", "_serial", "next_ns")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, TimerOwner]] = []
        self._serial = 0
        self.next_ns = NEVER
        """Earliest wake-up, NEVER when there is none."""

    def arm(self, owner: TimerOwner, when_ns: int) -> None:
        """Wake `owner` at `when_ns` at the latest."""
        if when_ns < owner.wake_ns:
            owner.wake_ns = when_ns
            self._serial += 1
            heappush(self._heap, (when_ns, self._serial, owner))
            if when_ns < self.next_ns:
                self.next_ns = when_ns

    def run(self, now_ns: int) -> None:
        """Wake every owner whose time has come."""
        if now_ns < self.next_ns:
            return
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            when, _, owner = heappop(heap)
            if when == owner.wake_ns:
                owner.wake_ns = NEVER
                # A deadline that is already past would be run again in this loop for ever.
                self.arm(owner, max(owner.on_timer(now_ns), now_ns + 1))
        while heap and heap[0][0] != heap[0][2].wake_ns:
            heappop(heap)
        self.next_ns = heap[0][0] if heap else NEVER
