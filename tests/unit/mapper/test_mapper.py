"""Accusations come, stay and go; what must not matter does not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.mapper import STALLED, MapAction, MapChange, PathMapper
from tests.mapping.rows import LINK, STANDARD
from tests.mapping.simulation import PERIOD_NS, Broken, Probed, accusations, mapped, plan_of

TABLE = STANDARD.table
Period = tuple[int, list[Observation]]


def timeline(*spans: tuple[Broken, int], seed: int = 1, fabric: Probed = STANDARD) -> list[Period]:
    """Some periods with this broken, then some with that."""
    found: list[Period] = []
    for number, (broken, count) in enumerate(spans):
        ahead = len(found) * PERIOD_NS
        for end_ns, rows in fabric.periods(broken, seed + number, count):
            found.append((end_ns + ahead, [later(row, ahead) for row in rows]))
    return found


def later(row: Observation, by_ns: int) -> Observation:
    begin_ns, end_ns = row.begin_ns + by_ns, row.end_ns + by_ns
    return replace(row, begin_ns=begin_ns, end_ns=end_ns, first_lost_ns=row.first_lost_ns + by_ns)


def words(changes: Sequence[MapChange]) -> list[tuple[str, str]]:
    return [(change.action.value, change.name) for change in changes]


def test_a_dead_link_is_accused_once_and_cleared_when_it_is_well() -> None:
    dead = {TABLE.named(LINK): 1.0}
    changes = mapped(TABLE, iter(timeline(({}, 10), (dead, 60), ({}, 40))))
    assert words(changes) == [("accuse", LINK), ("clear", LINK)]
    accused, cleared = changes
    assert accused.loss > 0.9
    assert abs(accused.since_ns - 10 * PERIOD_NS) < PERIOD_NS
    assert accused.sure > 0.9
    assert 70 * PERIOD_NS < cleared.t_ns <= 75 * PERIOD_NS


@pytest.mark.nightly
def test_what_loses_little_is_cleared_later_than_what_is_dead() -> None:
    def cleared_after(loss: float) -> int:
        changes = mapped(TABLE, iter(timeline(({TABLE.named(LINK): loss}, 200), ({}, 400), seed=3)))
        assert words(changes) == [("accuse", LINK), ("clear", LINK)]
        return changes[-1].t_ns // PERIOD_NS - 200

    assert cleared_after(1.0) < cleared_after(0.2) < cleared_after(0.05)


def test_a_lossy_link_stays_accused_while_it_loses() -> None:
    changes = mapped(TABLE, iter(timeline(({TABLE.named(LINK): 0.2}, 600), seed=5)))
    assert words(changes) == [("accuse", LINK)]


def test_what_the_wider_evidence_names_takes_the_place_of_its_parts() -> None:
    """First a link of a T1 dies, then all of it."""
    link, switch = TABLE.named(LINK), TABLE.named("p0-t1-2")
    changes = mapped(TABLE, iter(timeline(({link: 1.0}, 20), ({switch: 1.0}, 20))))
    assert words(changes)[0] == ("accuse", LINK)
    assert {name for action, name in words(changes) if action == "accuse"} <= {LINK, "p0-t1-2", "p0-t0-1:p0-t1-2"}
    standing: dict[str, bool] = {}
    for change in changes:
        standing[change.name] = change.action is MapAction.ACCUSE
    links = {one for name, on in standing.items() if on for one in TABLE.links_of(TABLE.named(name))}
    assert links == TABLE.links_of(switch)


def test_a_host_that_loses_everything_for_a_moment_is_not_believed() -> None:
    """It was stopped itself; the third such period counts."""
    host = TABLE.named("h2")
    assert mapped(TABLE, iter(timeline(({}, 5), ({host: 1.0}, STALLED - 1), ({}, 30)))) == []
    changes = mapped(TABLE, iter(timeline(({}, 5), ({host: 1.0}, 20))))
    assert words(changes) == [("accuse", "h2")]
    assert changes[0].t_ns >= (5 + STALLED) * PERIOD_NS


def test_late_rows_are_counted_and_left_out() -> None:
    mapper = PathMapper(TABLE, PERIOD_NS)
    route = STANDARD.routes[0][1]
    old = Observation(route, PERIOD_NS, PERIOD_NS, 100, 100, "h0", PERIOD_NS)
    assert mapper.turn(20 * PERIOD_NS, [old] * 3) == []
    assert mapper.late == 3
    assert list(mapper.accused) == []


# --- what must not matter ---


def rounded(changes: Sequence[MapChange]) -> list[MapChange]:
    """Sums of the same numbers in another order differ in their last digits."""
    return [replace(one, loss=round(one.loss, 9), gain=round(one.gain, 6), sure=round(one.sure, 9)) for one in changes]


def with_other_planes(periods: Sequence[Period], seed: int) -> tuple[list[Period], dict[str, str]]:
    """The same in a fabric whose planes have other numbers, and the new name of everything."""
    order = list(range(4))
    random.Random(seed).shuffle(order)

    def other(name: str) -> str:
        return ":".join(f"p{order[int(part[1])]}{part[2:]}" if part[0] == "p" else part for part in name.split(":"))

    names = {str(one): other(str(one)) for one in TABLE.all}
    singles = {str(one): next(iter(one.elements)) for one in TABLE.all if len(one.elements) == 1}
    moved = {element: singles[names[name]] for name, element in singles.items()}
    turned = [
        (end_ns, [replace(row, route=tuple(moved[element] for element in row.route)) for row in rows])
        for end_ns, rows in periods
    ]
    return turned, names


def three_faults(seed: int) -> list[Period]:
    rng = random.Random(seed)
    broken = {one: rng.choice([1.0, 0.3, 0.1]) for one in rng.sample([o for o in TABLE.all if not o.direction], 3)}
    return timeline(({}, 5), (broken, 40), ({}, 20), seed=seed)


@pytest.mark.nightly
def test_names_of_planes_do_not_matter() -> None:
    for seed in range(4):
        before = three_faults(seed)
        after, names = with_other_planes(before, seed)
        expected = [(one.t_ns, one.action, names[one.name]) for one in mapped(TABLE, iter(before))]
        assert sorted(expected) == sorted((one.t_ns, one.action, one.name) for one in mapped(TABLE, iter(after)))


@pytest.mark.nightly
def test_periods_without_a_loss_in_front_do_not_matter() -> None:
    for seed in range(4):
        faults = three_faults(seed)[5:]
        ahead = 100 * PERIOD_NS
        moved = [(end_ns + ahead, [later(row, ahead) for row in rows]) for end_ns, rows in faults]
        clean = [(end_ns, rows) for end_ns, rows in STANDARD.periods({}, seed, 105, noise=0.0)]
        alone = [change.name for change in accusations(mapped(TABLE, iter(faults)))]
        behind = [change.name for change in accusations(mapped(TABLE, iter([*clean, *moved])))]
        assert set(alone) == set(behind)


@pytest.mark.nightly
def test_a_row_in_two_halves_is_the_same_evidence() -> None:
    def halves(row: Observation) -> list[Observation]:
        half = row.sent // 2
        lost = min(row.lost, half)
        return [replace(row, sent=half, lost=lost), replace(row, sent=row.sent - half, lost=row.lost - lost)]

    for seed in range(4):
        rows = [(end, [replace(r, sent=4, lost=4 * r.lost) for r in each]) for end, each in three_faults(seed)]
        split = [(end, [half for row in each for half in halves(row)]) for end, each in rows]
        assert rounded(mapped(TABLE, iter(rows))) == rounded(mapped(TABLE, iter(split)))


def test_packets_that_nobody_lost_elsewhere_do_not_matter() -> None:
    """A plane more, without a loss."""
    wide = Probed(plan_of(5, 2, 4, 4))
    link = wide.table.named(LINK)
    narrow = mapped(TABLE, iter(timeline(({TABLE.named(LINK): 1.0}, 20))))
    names = {change.name for change in mapped(wide.table, iter(timeline(({link: 1.0}, 20), fabric=wide)))}
    assert names == {change.name for change in narrow} == {LINK}
