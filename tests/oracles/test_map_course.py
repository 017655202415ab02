"""A map over many periods, against a second computation that keeps every row."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.mapper import MapChange, PathMapper
from tests.mapping.simulation import PERIOD_NS, Broken, Probed, plan_of
from tests.oracles.map_course import Course, Line

FABRIC = Probed(plan_of(2, 2, 2, 2))
TABLE = FABRIC.table


def course_of(seed: int) -> list[tuple[int, list[Observation]]]:
    """Things that break, heal and overlap; a host that is stopped; rows that come late or are of many packets."""
    rng = random.Random(seed)
    found: list[tuple[int, list[Observation]]] = []
    for span in range(rng.choice([3, 4])):
        # Hosts that are stopped for a moment are hosts that lose everything.
        broken: Broken = {one: rng.choice([1.0, 1.0, 0.4, 0.1]) for one in rng.sample(TABLE.all, rng.choice([0, 1, 2]))}
        count = rng.choice([1, 2, 12, 30])
        ahead = len(found) * PERIOD_NS
        for end_ns, rows in FABRIC.periods(broken, 100 * seed + span, count, noise=0.001):
            found.append((end_ns + ahead, [_moved(rng, row, ahead) for row in rows]))
    return found


def _moved(rng: random.Random, row: Observation, by_ns: int) -> Observation:
    """By some time, now and then by four periods less; a row of ten packets, at a congested place, or of nothing."""
    end_ns = row.end_ns + by_ns - (rng.random() < 0.02) * 4 * PERIOD_NS
    sent, lost = rng.choice([(1, row.lost), (1, row.lost), (10, 10 * row.lost), (0, 0)])
    congested = rng.choice([0.0, 0.0, 0.02])
    return replace(row, begin_ns=end_ns, end_ns=end_ns, first_lost_ns=0, sent=sent, lost=lost, congested=congested)


def line(change: MapChange) -> Line:
    return change.t_ns, change.action.value, change.name, change.loss, change.since_ns, change.last_ns


def rounded(lines: list[Line]) -> list[Line]:
    """Shares of losses that were computed in another way."""
    return [(*each[:3], round(each[3], 9), *each[4:]) for each in lines]


@pytest.mark.parametrize("seed", range(40))
def test_a_map_says_what_all_rows_say(seed: int) -> None:
    settle, noise, alpha = 1 + seed % 2, (0.001, 0.01)[seed % 2], (1e-4, 1e-2)[seed % 3 == 0]
    mapper = PathMapper(TABLE, PERIOD_NS, settle, noise, alpha)
    course = Course(TABLE, PERIOD_NS, noise, alpha, settle)
    changes: list[MapChange] = []
    for now_ns, rows in course_of(seed):
        changes += mapper.turn(now_ns, rows)
        course.turn(now_ns, rows)
        held = [(one.name, round(one.loss, 9), one.since_ns, one.last_ns) for one in mapper.accused]
        said = [(one.suspect.name, round(one.loss, 9), one.since_ns, one.last_ns) for one in course.standing]
        assert held == said
    assert rounded([line(change) for change in changes]) == rounded(course.lines)
    assert (mapper.late, mapper.stalled) == (course.late, course.stalled)


def test_each_thing_that_a_map_can_say_is_among_them() -> None:
    said, left_out = set(), [0, 0]
    for seed in range(12):
        mapper = PathMapper(TABLE, PERIOD_NS)
        for now_ns, rows in course_of(seed):
            said |= {change.action.value for change in mapper.turn(now_ns, rows)}
        left_out = [left_out[0] + mapper.late, left_out[1] + mapper.stalled]
    assert said == {"accuse", "clear", "over"}
    assert min(left_out) > 0
