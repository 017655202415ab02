"""Sets of time, as intervals. Pure.

Times are whole nanoseconds, or infinite. An interval contains both its ends: what only touches it meets it, and what
is left beside it begins a nanosecond later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf
from typing import NamedTuple


class Interval(NamedTuple):
    """A time span with both its ends; the end is infinite if a fault was never healed."""

    begin: float
    end: float

    def holds(self, t_ns: float) -> bool:
        """True for a moment inside."""
        return self.begin <= t_ns <= self.end

    def meets(self, other: Interval) -> bool:
        """True if the two share a moment."""
        return self.begin <= other.end and other.begin <= self.end


class TimeSet:
    """A set of moments: intervals in order with other moments between them, the same for the same moments."""

    __slots__ = ("_begins", "_ends")

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        """The union of all."""
        self._begins: list[float] = []
        self._ends: list[float] = []
        for begin, end in sorted(one for one in intervals if one.begin <= one.end):
            if self._ends and begin <= self._ends[-1] + 1:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def __iter__(self) -> Iterator[Interval]:
        return map(Interval, self._begins, self._ends)

    def __bool__(self) -> bool:
        return bool(self._begins)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeSet) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TimeSet({[tuple(part) for part in self]})"

    def __invert__(self) -> TimeSet:
        """All other moments."""
        begins, ends = [-inf, *(end + 1 for end in self._ends)], [*(begin - 1 for begin in self._begins), inf]
        return TimeSet(Interval(*edges) for edges in zip(begins, ends, strict=True) if edges[0] < inf > -edges[1])

    def __or__(self, other: TimeSet) -> TimeSet:
        """The moments of either."""
        return TimeSet(chain(self, other))

    def __and__(self, other: TimeSet) -> TimeSet:
        """The moments of both."""
        return ~(~self | ~other)

    def __sub__(self, other: TimeSet) -> TimeSet:
        """The moments of the first alone."""
        return ~(~self | other)

    @property
    def length_ns(self) -> float:
        """How long the intervals are together."""
        return sum(self._ends) - sum(self._begins)

    def holds(self, t_ns: float) -> bool:
        """True for a moment of the set."""
        last = bisect_right(self._begins, t_ns) - 1
        return last >= 0 and t_ns <= self._ends[last]

    def meets(self, span: Interval) -> bool:
        """True if a moment of the span belongs to the set."""
        last = bisect_right(self._begins, span.end) - 1
        return last >= 0 and span.begin <= self._ends[last]

    def covers(self, span: Interval) -> bool:
        """True if all moments of the span do."""
        last = bisect_right(self._begins, span.begin) - 1
        return last >= 0 and span.end <= self._ends[last]


EVER = TimeSet([Interval(-inf, inf)])


def between(begin: float, end: float) -> TimeSet:
    """From a moment until another; no time where that is not later."""
    return TimeSet([Interval(begin, end)] if begin < end else ())
