"""The clock of the virtual world, and what is due by it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

_Due = tuple[int, int, Callable[..., None], tuple[Any, ...]]
"""When, a serial number that decides between equal times, and what."""


class Scheduler:
    """Time does not pass while an action runs; it jumps to that of the next one after it."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self._due: list[_Due] = []
        self._serial = 0

    def at(self, t_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call `action(*arguments)` at this time, or next if it is past. Equal times: in the order of these calls."""
        if t_ns < self.now_ns:
            t_ns = self.now_ns
        self._serial = serial = self._serial + 1
        heappush(self._due, (t_ns, serial, action, arguments))

    @property
    def next_ns(self) -> int | None:
        """When the next action is due; None if there is none."""
        return self._due[0][0] if self._due else None

    def run_next(self) -> bool:
        """Go to the next action and do it. False if there is none. Its exceptions come out here."""
        if not self._due:
            return False
        self.now_ns, _, action, arguments = heappop(self._due)
        action(*arguments)
        return True

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Do what is due until `done()` says so: asked at first and after every action.

        False at the deadline, with `now_ns` there and everything done that was due until then. Exceptions of actions
        come out here; what is due stays so.
        """
        due = self._due
        while not done():
            if not due or due[0][0] > deadline_ns:
                self.now_ns = max(self.now_ns, deadline_ns)
                return False
            self.now_ns, _, action, arguments = heappop(due)
            action(*arguments)
        return True
