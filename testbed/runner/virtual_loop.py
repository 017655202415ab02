"""The supervisor's loop in virtual time."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable

from testbed.virtual.scheduler import Scheduler

_LOOK_S = 0.05
"""Wall time between two looks at sockets: what people ask for is not part of a run's time."""


class VirtualLoop:
    """Times are those of `scheduler`, which nobody waits for. Sockets are looked at now and then."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._selector = selectors.DefaultSelector()
        self._watched = 0
        self._look_s = 0.0

    def now_ns(self) -> int:
        """The scheduler's."""
        return self._scheduler.now_ns

    def watch(self, source: socket.socket, readable: Callable[[], None]) -> None:
        """By a selector."""
        self._selector.register(source, selectors.EVENT_READ, readable)
        self._watched += 1

    def forget(self, source: socket.socket) -> None:
        """Take it out of the selector."""
        self._selector.unregister(source)
        self._watched -= 1

    def at(self, t_ns: int, action: Callable[[], None]) -> None:
        """Exactly then."""
        self._scheduler.at(t_ns, action)

    def every(self, period_ns: int, action: Callable[[], None], start_ns: int) -> None:
        """Exactly each time."""

        def again() -> None:
            action()
            self.at(self._scheduler.now_ns + period_ns, again)

        self.at(start_ns, again)

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Do what is due until then."""
        if not self._watched:
            return self._scheduler.run_until(done, deadline_ns)

        def looked() -> bool:
            self._look()
            return done()

        return self._scheduler.run_until(looked, deadline_ns)

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._look_s:
            self._look_s = now_s + _LOOK_S
            for key, _ in self._selector.select(0):
                key.data()
