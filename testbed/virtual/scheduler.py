"""The clock of the virtual world, and what is due by it.

What is due lies in stretches of time, each a chain that nobody puts in order before its turn comes. So putting
something in costs no more when there is much of it, as it would in a heap, and nothing is made for it: what is due is
itself a link of the chain. Stretches are made shorter or longer while the world runs, until few things lie in each and
few of them are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FIRST_BITS = 17
"""Length of a stretch at first: 2^17 ns."""
LEAST_BITS = 4
MOST_BITS = 40
STRETCHES = 1 << 16
"""A chain for each of the next stretches. What is due after them lies in one chain, until time has come near."""
_PLACES = STRETCHES - 1
MOST_PASSED = 2
MOST_EMPTY = 6
"""Things passed by when others are put in order, and empty stretches, for each stretch that is not empty: above these
stretches are made half as long, or twice as long."""
LOOK_EVERY = 256
"""Stretches between two looks at that."""
ASK_EVERY = 16
"""Turns between two questions whether all is done."""


class Due:
    """Something that acts when its time comes, once each time that it is put into a scheduler, in which it is then at
    most once. Who waits in `run_until` is to hear of what it does by `Scheduler.at`.

    `at_ns`: that time; `then`: what lies behind it in the same chain."""

    __slots__ = ("at_ns", "then")

    def __init__(self) -> None:
        self.at_ns = 0
        self.then: Due | None = None

    def act(self) -> None:
        """Its time has come."""
        raise NotImplementedError


class _Call(Due):
    """One call of whatever can be called."""

    __slots__ = ("_action", "_arguments")

    def __init__(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        super().__init__()
        self._action = action
        self._arguments = arguments

    def act(self) -> None:
        """Make it."""
        self._action(*self._arguments)


class Scheduler:
    """Time does not pass while an action runs; it jumps to that of the next one after it."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self._first: Due | None = None
        """What is due up to the end of the stretch `_number`, in order; `_last` is the end of this chain."""
        self._last: Due | None = None
        self._bits = FIRST_BITS
        self._later: list[Due | None] = [None] * STRETCHES
        """What is due in the stretches after that and before `_end`: chains by their number modulo STRETCHES, with what
        came last at the head. There are `_waiting` things in them."""
        self._waiting = 0
        self._far: Due | None = None
        """What is due from `_end` on: a chain with what came last at the head."""
        self._begin_at(now_ns >> self._bits)
        self._opened = self._passed = self._empty = 0
        """Since the last look at the length of stretches: those that were opened, what was passed by in them, and the
        empty ones."""

    def _begin_at(self, number: int) -> None:
        self._number, self._end = number, number + STRETCHES

    def at(self, t_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call `action(*arguments)` at this time, or next if it is past. Equal times: in the order of these calls."""
        self.wake(t_ns, _Call(action, arguments))

    def wake(self, t_ns: int, due: Due) -> None:
        """Call `due.act()`, as `at` does."""
        due.at_ns = at_ns = t_ns if t_ns > self.now_ns else self.now_ns
        number = at_ns >> self._bits
        if number <= self._number:
            self._put_in_order(due)
        elif number < self._end:
            later, place = self._later, number & _PLACES
            due.then = later[place]
            later[place] = due
            self._waiting += 1
        else:
            due.then = self._far
            self._far = due

    def _put_in_order(self, due: Due) -> None:
        """Put it behind all that is due until its time."""
        first, last, at_ns = self._first, self._last, due.at_ns
        if first is None or last is None:
            due.then = None
            self._first = self._last = due
        elif last.at_ns <= at_ns:
            due.then = None
            last.then = self._last = due
        elif first.at_ns > at_ns:
            due.then = first
            self._first = due
        else:
            self._put_between(first, due, at_ns + 1)
            if self._passed > MOST_PASSED * LOOK_EVERY:
                self._look_at_length()

    def _put_between(self, before: Due, due: Due, until_ns: int) -> None:
        """Put it behind `before` and what else is due before `until_ns`; something is due later."""
        passed = 1
        following = before.then
        while following is not None and following.at_ns < until_ns:
            before, following = following, following.then
            passed += 1
        due.then, before.then = following, due
        self._passed += passed

    def _open(self, chain: Due) -> None:
        """Put what lies in the chain of a stretch in order, while nothing else is."""
        first = last = chain
        following, chain.then = chain.then, None
        count = 1
        while following is not None:
            due, following = following, following.then
            at_ns = due.at_ns
            if at_ns <= first.at_ns:  # what is due at the same time came later
                due.then = first
                first = due
            elif at_ns > last.at_ns:
                due.then = None
                last.then = last = due
            else:
                self._put_between(first, due, at_ns)
            count += 1
        self._first, self._last = first, last
        self._waiting -= count

    def _put_all(self, chain: Due | None) -> None:
        """Put in what lies in a chain with what came last at the head."""
        turned: Due | None = None
        while chain is not None:
            behind, chain.then = chain.then, turned
            turned, chain = chain, behind
        while turned is not None:
            due, turned = turned, turned.then
            self.wake(due.at_ns, due)

    @property
    def next_ns(self) -> int | None:
        """When the next action is due; None if there is none."""
        due = self._next()
        return None if due is None else due.at_ns

    def _next(self) -> Due | None:
        """What is due next; None if nothing is."""
        return self._open_next() if self._first is None else self._first

    def _open_next(self) -> Due | None:
        """Go to the next stretch in which anything is due, and put that in order."""
        if self._opened >= LOOK_EVERY:
            self._look_at_length()
        if self._first is None and (self._waiting or self._bring_near()):
            later, number = self._later, self._number + 1
            while (chain := later[number & _PLACES]) is None:
                number += 1
            later[number & _PLACES] = None
            self._empty += number - self._number - 1
            self._opened += 1
            self._number = number
            self._open(chain)
        return self._first

    def _bring_near(self) -> bool:
        """Nothing is due before `_end`: go on shortly before what is due first after it. False if nothing is."""
        far = each = self._far
        if far is None or each is None:
            return False
        first_ns = far.at_ns
        while each is not None:
            first_ns, each = min(first_ns, each.at_ns), each.then
        self._far = None
        self._begin_at((first_ns >> self._bits) - 1)
        self._put_all(far)
        return True

    def _look_at_length(self) -> None:
        opened, passed, empty = self._opened, self._passed, self._empty
        self._opened = self._passed = self._empty = 0
        if passed > MOST_PASSED * opened:
            if self._bits > LEAST_BITS:
                self._set_bits(self._bits - 1)
        elif empty > MOST_EMPTY * opened and 4 * passed < opened and self._bits < MOST_BITS:
            self._set_bits(self._bits + 1)

    def _set_bits(self, bits: int) -> None:
        """Put all that is due into stretches of another length."""
        in_order, later, far = self._first, self._later, self._far
        self._first = self._far = None
        self._later, self._waiting = [None] * STRETCHES, 0
        self._bits = bits
        self._begin_at(self.now_ns >> bits)
        while in_order is not None:
            due, in_order = in_order, in_order.then
            self.wake(due.at_ns, due)
        for chain in later:
            if chain is not None:
                self._put_all(chain)
        self._put_all(far)

    def run_next(self) -> bool:
        """Go to the next action and do it. False if there is none. Its exceptions come out here."""
        due = self._next()
        if due is None:
            return False
        self._go_on(due)
        return True

    def _go_on(self, due: Due) -> None:
        """Do what is due next."""
        self._first, due.then = due.then, None
        self.now_ns = due.at_ns
        due.act()

    def run_until(self, done: Callable[[], bool], deadline_ns: int) -> bool:
        """Do what is due until `done()` says so: asked at first, after every call, after every ASK_EVERY turns of
        others (what these change for those who wait, they change by calls), and at the end.

        False at the deadline, with `now_ns` there and everything done that was due until then. Exceptions of actions
        come out here; what is due stays so.
        """
        if done():
            return True
        quiet = 0
        while True:
            due = self._first
            if due is None:
                due = self._open_next()
            if due is None or due.at_ns > deadline_ns:
                if quiet and done():
                    return True
                self.now_ns = max(self.now_ns, deadline_ns)
                return False
            self._go_on(due)
            quiet += 1
            if quiet == ASK_EVERY or type(due) is _Call:
                quiet = 0
                if done():
                    return True
