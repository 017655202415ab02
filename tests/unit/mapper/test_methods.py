"""The mapper beside two published methods on the same probes: no less precise, whatever is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

import pytest

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from tests.mapping.netbouncer import netbouncer
from tests.mapping.rows import ROWS, STANDARD, FaultRow
from tests.mapping.seven import seven
from tests.mapping.simulation import PERIOD_NS, accusations, is_right, mapped

SEEDS = 3
WINDOW = 16
"""Periods that the other methods look at."""
DEAD = [name for name, row in ROWS.items() if row.broken and set(row.broken.values()) == {1.0}]
Periods = Iterator[tuple[int, list[Observation]]]


def begin_ns(seed: int) -> int:
    """When things break: each time at another place of a period."""
    return 5 * PERIOD_NS + seed * 67_000_000


def periods(row: FaultRow, seed: int) -> Periods:
    return STANDARD.periods(row.broken, seed, row.periods, begin_ns(seed))


def named_by(method: Callable[[SuspectTable, Sequence[Observation]], set[str]], rows: Periods) -> list[str]:
    """What a method that looks at a stretch of evidence names, each time that it does."""
    kept: list[list[Observation]] = []
    held: set[str] = set()
    found: list[str] = []
    for _, latest in rows:
        kept = [*kept, latest][-WINDOW:]
        names = method(STANDARD.table, [row for each in kept for row in each])
        found += sorted(names - held)
        held = names
    return found


def precision(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else 1.0


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.nightly(keep=3)
def test_it_is_at_least_as_precise_as_netbouncer_and_007(name: str) -> None:
    row = ROWS[name]
    true = {suspect.name for suspect in row.broken} | {
        link for suspect in row.broken for link in STANDARD.table.links_of(suspect)
    }
    ours, others = [], []
    for seed in range(SEEDS):
        changes = accusations(mapped(STANDARD.table, periods(row, seed)))
        ours += [is_right(STANDARD.table, change, row.broken) for change in changes]
        others.append([each in true for each in named_by(netbouncer, periods(row, seed))])
        others.append([each in true for each in named_by(seven, periods(row, seed))])
    assert precision(ours) == 1.0
    assert all(precision(ours) >= precision(other) for other in others)


@pytest.mark.parametrize("name", DEAD)
@pytest.mark.nightly(keep=3)
def test_dead_things_are_named_within_two_periods(name: str) -> None:
    """In the median; two more where several died at once."""
    row, took = ROWS[name], []
    for seed in range(12):
        changes = accusations(mapped(STANDARD.table, periods(row, seed)))
        assert {change.name for change in changes} == {suspect.name for suspect in row.broken}
        took.append((changes[-1].t_ns - begin_ns(seed)) / PERIOD_NS)
    assert median(took) <= (2 if len(row.broken) == 1 else 3)
    assert max(took) <= 5


def test_a_fifth_lost_is_named_within_a_second() -> None:
    """At ten probes a second on a link, in the median."""
    row, took = ROWS["link 20 %"], []
    for seed in range(20):
        changes = accusations(mapped(STANDARD.table, periods(row, seed)))
        assert all(is_right(STANDARD.table, change, row.broken) for change in changes)
        took.append((changes[0].t_ns - begin_ns(seed)) / 1e9)
    assert median(took) <= 1.0


def test_a_clean_fabric_accuses_nobody() -> None:
    """Ten minutes, and three times the noise that is allowed for in a probe."""
    assert mapped(STANDARD.table, STANDARD.periods({}, 1, 3000)) == []
    assert mapped(STANDARD.table, STANDARD.periods({}, 2, 500, noise=0.003)) == []
