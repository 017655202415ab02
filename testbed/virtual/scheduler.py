"""The clock of the virtual world, and what is due by it.

What is due lies in stretches of time, each a list that nobody sorts before its turn comes. So putting something in
costs no more when there is much of it, as it would in a heap. Stretches are made shorter or longer while the world
runs, until a few things lie in each.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any

FIRST_BITS = 17
"""Length of a stretch at first: 2^17 ns."""
LEAST_BITS = 4
MOST_BITS = 40
FEW = 2
MANY = 16
"""Things in a stretch, on average, below and above which it is made twice as long or half as long."""
LOOK_EVERY = 256
"""Stretches between two looks at that."""
ASK_EVERY = 16
"""Turns of actors between two questions whether all is done."""


class Actor:
    """Whose turn comes again and again: with `Scheduler.wake` nothing is made for it. Who waits in `run_until` is to
    hear of what an actor does by `Scheduler.at`."""

    def act(self, what: Any) -> None:
        """Its time has come. `what`: as it was given."""
        raise NotImplementedError


class _Call(Actor):
    """One call of whatever can be called."""

    __slots__ = ("_action", "_arguments")

    def __init__(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._action = action
        self._arguments = arguments

    def act(self, what: Any) -> None:
        """Make it."""
        self._action(*self._arguments)


_Due = tuple[int, Actor, Any]
"""When, whose turn it is, and what it is given."""
_when: Callable[[_Due], int] = itemgetter(0)


class Scheduler:
    """Time does not pass while an action runs; it jumps to that of the next one after it."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self._bits = FIRST_BITS
        self._now: list[_Due] = []
        """What is due up to the end of the stretch `_number`, in order, from `_place` on."""
        self._place = 0
        self._number = now_ns >> self._bits
        self._later: dict[int, list[_Due]] = {}
        """What is due in later stretches, by their number; equal times in the order in which they came."""
        self._numbers: list[int] = []
        """A heap of these."""
        self._opened = self._taken = 0
        """Stretches since the last look at their length, and what lay in them."""

    def at(self, t_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call `action(*arguments)` at this time, or next if it is past. Equal times: in the order of these calls."""
        self.wake(t_ns, _Call(action, arguments), None)

    def wake(self, t_ns: int, actor: Actor, what: Any) -> None:
        """Call `actor.act(what)`, as `at` does."""
        if t_ns < self.now_ns:
            t_ns = self.now_ns
        number = t_ns >> self._bits
        due = t_ns, actor, what
        if number <= self._number:
            insort(self._now, due, self._place, key=_when)
            return
        later = self._later.get(number)
        if later is None:
            self._later[number] = [due]
            heappush(self._numbers, number)
        else:
            later.append(due)

    @property
    def next_ns(self) -> int | None:
        """When the next action is due; None if there is none."""
        return self._now[self._place][0] if self._place < len(self._now) or self._open_next() else None

    def _open_next(self) -> bool:
        """Go to the next stretch in which anything is due. False if there is none."""
        self._place = 0
        if not self._numbers:
            self._now = []
            return False
        self._number = heappop(self._numbers)
        now = self._later.pop(self._number)
        if len(now) > 1:
            now.sort(key=_when)
        self._now = now
        self._opened += 1
        self._taken += len(now)
        if self._opened == LOOK_EVERY:
            self._look_at_length()
        return True

    def _look_at_length(self) -> None:
        if self._taken > MANY * LOOK_EVERY and self._bits > LEAST_BITS:
            self._set_bits(self._bits - 1)
        elif self._taken < FEW * LOOK_EVERY and self._bits < MOST_BITS:
            self._set_bits(self._bits + 1)
        self._opened = self._taken = 0

    def _set_bits(self, bits: int) -> None:
        """Sort what is due later into stretches of another length. What is open stays so, to its end."""
        end_ns = (self._number + 1 << self._bits) - 1
        before = [self._later[number] for number in sorted(self._later)]
        self._bits, self._number = bits, end_ns >> bits
        self._later = {}
        for stretch in before:
            for due in stretch:
                number = due[0] >> bits
                if number <= self._number:
                    insort(self._now, due, key=_when)
                else:
                    self._later.setdefault(number, []).append(due)
        self._numbers = list(self._later)
        heapify(self._numbers)

    def run_next(self) -> bool:
        """Go to the next action and do it. False if there is none. Its exceptions come out here."""
        if self._place == len(self._now) and not self._open_next():
            return False
        self._go_on()
        return True

    def _go_on(self) -> bool:
        """Do the next thing; True if it was a call."""
        t_ns, actor, what = self._now[self._place]
        self._place += 1
        self.now_ns = t_ns
        actor.act(what)
        return isinstance(actor, _Call)

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Do what is due until `done()` says so: asked at first, after every call, after every ASK_EVERY turns of
        actors (what they change for others, they change by calls), and at the end.

        False at the deadline, with `now_ns` there and everything done that was due until then. Exceptions of actions
        come out here; what is due stays so.
        """
        if done():
            return True
        quiet = 0
        while True:
            if (self._place == len(self._now) and not self._open_next()) or self._now[self._place][0] > deadline_ns:
                if quiet and done():
                    return True
                self.now_ns = max(self.now_ns, deadline_ns)
                return False
            quiet += 1
            if self._go_on() or quiet == ASK_EVERY:
                quiet = 0
                if done():
                    return True
