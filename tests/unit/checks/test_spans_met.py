"""Packets that met something broken: those of its time, each link once, and in the direction that is broken."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mrc_testbed.testbed.checks.broken import BrokenSpan
from mrc_testbed.testbed.checks.spans_met import SpansMet
from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import Direction, SuspectTable
from tests.mapping.simulation import plan_of

TABLE = SuspectTable(plan_of(1, 2, 2, 1))
LINK = "p0-t0-0:p0-t1-0"
UP = TABLE.crossed("h0", ["h0:p0-t0-0", LINK])
BOTH = TABLE.crossed("h0", ["h0:p0-t0-0", LINK, LINK, "h0:p0-t0-0"])
DOWN = TABLE.crossed("p0-t1-0", [LINK, "h0:p0-t0-0"])


def broken(direction: Direction | None = None, asked: bool = True, share: float = 1.0) -> BrokenSpan:
    return BrokenSpan("f", 0, "link-loss", 10, 12, 20, frozenset([LINK]), direction, share, asked)


def met(span: BrokenSpan, rows: Sequence[Observation], most: int = 60) -> int:
    """How many packets."""
    spans = SpansMet([span], TABLE)
    spans.add(rows)
    return max((packets for packets in range(1, most) if shows(spans, packets)), default=0)


def shows(spans: SpansMet, needed: int) -> bool:
    (found,) = spans.expected(0, lambda _: needed)
    return bool(found.shown)


def row(begin: int, end: int, sent: int, lost: int = 0, way: tuple[int, ...] = UP) -> Observation:
    return Observation(way, begin, end, sent, lost, "h0")


@pytest.mark.parametrize(
    ("rows", "packets"),
    [
        ([row(0, 10, 7)], 0),
        ([row(20, 30, 7)], 0),
        ([row(10, 20, 7)], 7),
        ([row(0, 20, 10)], 5),
        ([row(15, 25, 10)], 5),
        ([row(5, 25, 10)], 5),
        ([row(12, 14, 4)], 4),
        ([row(15, 25, 10, 7)], 7),
        ([row(15, 15, 3)], 3),
        ([row(10, 10, 3)], 0),
        ([row(20, 20, 3)], 0),
        ([row(12, 14, 4), row(0, 20, 10), row(30, 40, 9)], 9),
        ([row(12, 14, 4, way=BOTH)], 4),
    ],
)
def test_packets_of_its_time_count(rows: list[Observation], packets: int) -> None:
    assert met(broken(), rows) == packets


@pytest.mark.parametrize(
    ("direction", "way", "packets"),
    [(None, UP, 4), (None, DOWN, 4), ("up", UP, 4), ("up", DOWN, 0), ("down", UP, 0), ("down", DOWN, 4)],
)
def test_packets_the_other_way_do_not_meet_what_loses_one_way(
    direction: Direction | None, way: tuple[int, ...], packets: int
) -> None:
    assert met(broken(direction), [row(12, 14, 4, way=way)]) == packets


@pytest.mark.parametrize(("least", "asked"), [(0, True), (8, True), (9, False)])
def test_what_was_in_place_too_shortly_is_not_asked_for(least: int, asked: bool) -> None:
    spans = SpansMet([broken(), broken(asked=False)], TABLE)
    spans.add([row(12, 14, 4)])
    found = list(spans.expected(least, lambda _: 4))
    assert [one.asked for one in found] == [asked, False]
    assert [one.shown for one in found] == [{LINK}, {LINK}]
    assert not any(one.asked for one in spans.expected(least, lambda _: 5)), "too few packets met it"


def test_as_many_packets_are_needed_as_its_share_wants() -> None:
    spans = SpansMet([broken(share=0.5), broken(share=0.25)], TABLE)
    spans.add([row(12, 14, 3)])
    assert [bool(one.shown) for one in spans.expected(0, lambda share: round(1 / share))] == [True, False]
