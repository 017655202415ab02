"""The supervisor's loop in virtual time."""

from __future__ import annotations

import heapq
import selectors
import socket
import time
from collections.abc import Callable
from itertools import count

from mrc_testbed.testbed.virtual.scheduler import Scheduler

_LOOK_EVERY = 4
"""Times that a run is asked whether it is done between two looks at people's clock: under a millisecond."""
_LISTEN_NS = 50_000_000
"""People's time between two looks at sockets."""


class VirtualLoop:
    """Times are those of `scheduler`, which nobody waits for. Now and then it looks at what is not part of a run's
    time: sockets, and what is due by the clock of people."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._selector = selectors.DefaultSelector()
        self._asides: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._until_look = 0

    def now_ns(self) -> int:
        """The scheduler's."""
        return self._scheduler.now_ns

    def watch(self, source: socket.socket, readable: Callable[[], None]) -> None:
        """By a selector."""
        if not self._selector.get_map():
            self.aside(0, self._listen)
        self._selector.register(source, selectors.EVENT_READ, readable)

    def forget(self, source: socket.socket) -> None:
        """Take it out of the selector."""
        self._selector.unregister(source)

    def at(self, t_ns: int, action: Callable[[], None]) -> None:
        """Exactly then."""
        self._scheduler.at(t_ns, action)

    def every(self, period_ns: int, action: Callable[[], None], start_ns: int) -> None:
        """Exactly each time."""

        def again() -> None:
            action()
            self.at(self._scheduler.now_ns + period_ns, again)

        self.at(start_ns, again)

    def aside(self, after_ns: int, action: Callable[[], None]) -> None:
        """By the clock of people, when it is looked at."""
        heapq.heappush(self._asides, (time.monotonic_ns() + after_ns, next(self._order), action))

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Do what is due until then."""
        if not self._asides:
            return self._scheduler.run_until(done, deadline_ns)

        def looked() -> bool:
            # Not when it is done: a look may move the clock, and what follows would begin later than without it.
            if done():
                return True
            self._until_look -= 1
            if self._until_look >= 0:
                return False
            self._look()
            return done()

        return self._scheduler.run_until(looked, deadline_ns)

    def _look(self) -> None:
        self._until_look = _LOOK_EVERY
        now_ns, due = time.monotonic_ns(), []
        while self._asides and self._asides[0][0] <= now_ns:
            due.append(heapq.heappop(self._asides)[2])
        for action in due:
            action()

    def _listen(self) -> None:
        heard = self._selector.select(0)
        if heard and not self._own_moment():
            self._until_look = 0
            self.aside(0, self._listen)
            return
        for key, _ in heard:
            key.data()
        if self._selector.get_map():
            self.aside(_LISTEN_NS, self._listen)

    def _own_moment(self) -> bool:
        """Go to a time at which nothing else happens, if it is the next: in a replay what people do then comes first
        of all that happens at its time."""
        scheduler = self._scheduler
        following = scheduler.now_ns + 1
        if scheduler.next_ns is not None and scheduler.next_ns <= following:
            return False
        scheduler.now_ns = following
        return True
