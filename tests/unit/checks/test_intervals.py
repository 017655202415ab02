"""Sets of time against sets of whole numbers: every operation, and edges."""

from __future__ import annotations

import random
from math import inf

import pytest

from mrc_testbed.testbed.checks.intervals import EVER, Interval, TimeSet, between

MOST = 20


def drawn(dice: random.Random) -> TimeSet:
    edges = [(dice.randrange(MOST), dice.randrange(MOST)) for _ in range(dice.randrange(5))]
    return TimeSet(Interval(*edge) for edge in edges)


def held(times: TimeSet) -> set[int]:
    return {at for at in range(-2, MOST + 9) if times.holds(at)}


@pytest.mark.parametrize("seed", range(200))
def test_operations_are_those_of_sets(seed: int) -> None:
    dice = random.Random(seed)
    one, other = drawn(dice), drawn(dice)
    everything = held(EVER)
    assert held(~one) == everything - held(one)
    assert held(one | other) == held(one) | held(other)
    assert held(one & other) == held(one) & held(other)
    assert held(one - other) == held(one) - held(other)
    assert one.length_ns == len(held(one)) - len(list(one))
    assert ~~one == one
    assert bool(one) is bool(held(one))
    begin, long = dice.randrange(MOST), dice.randrange(4)
    span, inside = Interval(begin, begin + long), set(range(begin, begin + long + 1))
    assert one.meets(span) is bool(inside & held(one))
    assert one.covers(span) is (inside <= held(one))
    other_span = Interval(begin := dice.randrange(MOST), begin + dice.randrange(4))
    assert other_span.meets(span) is TimeSet([other_span]).meets(span)


def test_the_same_moments_are_the_same_times() -> None:
    apart = [Interval(5, 6), Interval(1, 2), Interval(2, 3), Interval(1, 1.5), Interval(8, 7)]
    assert list(TimeSet(apart)) == [Interval(1, 3), Interval(5, 6)]
    assert TimeSet(reversed(apart)) == TimeSet(apart) != between(1, 6)
    assert list(TimeSet()) == []
    assert repr(TimeSet(apart)) == "TimeSet([(1, 3), (5, 6)])"


def test_what_is_left_beside_an_interval_begins_after_its_end() -> None:
    assert between(1, inf).covers(Interval(5, inf))
    assert list(~between(1, inf)) == [Interval(-inf, 0)]
    assert list(between(0, 9) - between(2, 4)) == [Interval(0, 1), Interval(5, 9)]
    assert not between(4, 4)
    assert not ~EVER
