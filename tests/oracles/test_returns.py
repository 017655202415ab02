"""When goodput was back, against the sentences of its docstring read slowly, millisecond by millisecond, on random
points."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf

import pytest

from mrc_testbed.testbed.checks.goodput_series import FollowedGoodput, GoodputPoint, Return, returned, worst_return
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.windows import NoData

GOOD = 0.95
SHARES = (0.5, 0.94, GOOD, GOOD, 1.0, 1.0, 1.2)
CASES = 400


def points_of(rng: random.Random) -> list[GoodputPoint]:
    """Side by side for the most part, now and then with time between them, or over each other."""
    found, begin = [], 0
    for _ in range(rng.randint(1, 12)):
        begin += rng.choice([0, 0, 0, 1, 4])
        end = begin + rng.randint(1, 4)
        found.append(GoodputPoint(Interval(begin, end), rng.choice(SHARES)))
        begin = end - rng.choice([0, 0, 0, 0, 1])
    return sorted(found, key=lambda point: point.time.begin)


def telling(points: Sequence[GoodputPoint], span: Interval) -> list[GoodputPoint]:
    """Parts with a moment of the span in them. One that goes on behind it tells if it was good; or if no other lies
    wholly inside, and the greater part of it that is not before the span is."""
    some = [point for point in points if any(span.begin <= ms < span.end for ms in moments(point.time))]
    whole = [point for point in some if all(span.begin <= ms < span.end for ms in moments(point.time))]
    found = []
    for point in some:
        before = [ms for ms in moments(point.time) if ms < span.begin]
        inside = [ms for ms in moments(point.time) if span.begin <= ms < span.end]
        behind = len(moments(point.time)) - len(before) - len(inside)
        if not behind or point.share >= GOOD or (not whole and len(inside) > behind):
            found.append(point)
    return found


def moments(time: Interval) -> range:
    return range(int(time.begin), int(time.end))


def longest_unknown(points: Sequence[GoodputPoint], begin: float, end: float) -> int:
    """How many milliseconds in a row nothing tells of."""
    told = {ms for point in points for ms in moments(point.time)}
    longest = now = 0
    for ms in range(int(begin), int(end)):
        now = 0 if ms in told else now + 1
        longest = max(longest, now)
    return longest


def slowly(points: Sequence[GoodputPoint], span: Interval, until: float, gap: float) -> Return | None:
    """None where nothing is known."""
    seen = telling(points, span)
    low = [place for place, point in enumerate(seen) if point.share < GOOD and point.time.begin <= until]
    if not seen:
        return None
    length = span.end - span.begin
    if not low:
        if longest_unknown(seen, span.begin, min(until, span.end)) > gap:
            return None
        usual = [point.share for point in seen if point.time.begin <= until] or [seen[0].share]
        return Return(0.0, length, min(usual))
    for place in range(low[-1] + 1, len(seen)):
        if not [point for point in seen[place : place + 3] if point.share < GOOD]:
            back = seen[place].time.begin
            if longest_unknown(seen, seen[low[-1]].time.begin, max(back, min(until, span.end))) > gap:
                return None
            return Return(back - span.begin, length, min(point.share for point in seen[:place]))
    return Return(None, min(seen[-1].time.end, span.end) - span.begin, min(point.share for point in seen))


def found(points: Sequence[GoodputPoint], span: Interval, until: float, gap: float) -> Return | None:
    try:
        return returned(points, span, until, gap)
    except NoData:
        return None


@pytest.mark.parametrize("seed", range(5))
def test_goodput_is_back_when_the_sentences_say_so(seed: int) -> None:
    rng = random.Random(seed)
    told = set()
    for _ in range(CASES):
        points = points_of(rng)
        begin = rng.randint(0, 20)
        span = Interval(begin, begin + rng.randint(1, 20))
        until, gap = begin + rng.randint(0, 25), rng.choice([inf, 0, 2, 3])
        wanted = slowly(points, span, until, gap)
        assert found(points, span, until, gap) == wanted, (points, span, until, gap)
        told.add(wanted and (wanted.after_ns is None, wanted.fell))
    assert told == {None, (False, False), (False, True), (True, True)}


def test_of_several_jobs_the_last_and_the_lowest_count() -> None:
    rng = random.Random(7)
    for _ in range(CASES):
        jobs = [FollowedGoodput(points_of(rng), rng.choice([inf, rng.randint(1, 30)]), inf) for _ in range(2)]
        begin = rng.randint(0, 10)
        span, until = Interval(begin, begin + 20), begin + rng.randint(0, 25)
        each = [slowly(job.points, span, min(until, job.ended_ns), inf) for job in jobs]
        known = [one for one in each if one]
        if len(known) < len(each):
            with pytest.raises(NoData):
                worst_return(jobs, span, until)
            continue
        worst = worst_return(jobs, span, until)
        never = [one for one in known if one.after_ns is None]
        assert worst.after_ns == (None if never else max(one.after_ns or 0 for one in known))
        assert worst.lowest == min(one.lowest for one in known)


def test_a_fall_is_told_by_when_it_was_over() -> None:
    assert [Return(after, 1, 1).fell for after in (None, 0.0, 1.0)] == [True, False, True]
