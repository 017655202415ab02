"""The supervisor's only loop: daemon sockets and timed actions, without threads; and what any world's loop can do."""

from __future__ import annotations

import heapq
import selectors
import socket
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol


class Loop(Protocol):
    """Calls back when a socket is readable or a timer is due. Times are nanoseconds of the world's clock."""

    def now_ns(self) -> int:
        """The time."""

    def watch(self, source: socket.socket, readable: Callable[[], None]) -> None:
        """Call `readable` whenever the socket has data."""

    def forget(self, source: socket.socket) -> None:
        """Stop watching."""

    def at(self, t_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, at that time or as soon after as possible; equal times in order of registration."""

    def every(self, period_ns: int, action: Callable[[], None], start_ns: int) -> None:
        """Call `action` periodically; a late call does not shift later ones, missed calls are skipped."""

    def aside(self, after_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, after `after_ns` on the clock of those who watch the run. It must not change the run."""

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Run until `done()` or the deadline; True if done. Exceptions of actions propagate."""


class RealTimeLoop:
    """By CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._readable: dict[object, Callable[[], None]] = {}

    def now_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def watch(self, source: socket.socket, readable: Callable[[], None]) -> None:
        """By a selector."""
        self._selector.register(source, selectors.EVENT_READ, readable)
        self._readable[source] = readable

    def forget(self, source: socket.socket) -> None:
        """Take it out of the selector."""
        self._selector.unregister(source)
        del self._readable[source]

    def at(self, t_ns: int, action: Callable[[], None]) -> None:
        """A timer of a heap."""
        heapq.heappush(self._timers, (t_ns, next(self._order), action))

    def every(self, period_ns: int, action: Callable[[], None], start_ns: int) -> None:
        """A timer that sets itself again."""

        def again(due_ns: int) -> None:
            action()
            missed = max(0, time.monotonic_ns() - due_ns) // period_ns
            following = due_ns + (missed + 1) * period_ns
            self.at(following, lambda: again(following))

        self.at(start_ns, lambda: again(start_ns))

    def aside(self, after_ns: int, action: Callable[[], None]) -> None:
        """The run's time is theirs."""
        self.at(time.monotonic_ns() + after_ns, action)

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Turn until then."""
        while not done():
            now = time.monotonic_ns()
            if now >= deadline_ns:
                return False
            wake_ns = min(deadline_ns, self._timers[0][0]) if self._timers else deadline_ns
            for key, _ in self._selector.select(max(0, wake_ns - now) / 1e9):
                readable = self._readable.get(key.fileobj)
                if readable and readable is key.data:  # not if one of these has it forgotten
                    readable()
            self._run_due()
        return True

    def _run_due(self) -> None:
        now = time.monotonic_ns()
        while self._timers and self._timers[0][0] <= now:
            _, _, action = heapq.heappop(self._timers)
            action()
