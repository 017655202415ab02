"""The window of evidence against a plain list of all rows."""

from __future__ import annotations

import random

import pytest

from mrc_testbed.testbed.mapper.evidence import BINS_A_PERIOD, EvidenceWindow, Observation
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from tests.mapping.simulation import plan_of

PLAN = plan_of(1, 2, 2, 1)
TABLE = SuspectTable(PLAN)
SRC, DST = PLAN.hosts
WAYS = [TABLE.crossed(SRC.name, PLAN.links_on_path(SRC, DST, path.id)) for path in PLAN.paths(SRC, DST)]
PERIOD_NS = 40
GRAIN_NS = PERIOD_NS // BINS_A_PERIOD
PERIODS = 3
BINS = PERIODS * BINS_A_PERIOD


def rows_of(rng: random.Random, now_ns: int) -> list[Observation]:
    """Rows of the period that ends now, in no order."""
    found = []
    for _ in range(rng.randint(0, 4)):
        end_ns = rng.randint(now_ns - PERIOD_NS + 1, now_ns)
        begin_ns = max(0, end_ns - rng.choice([0, 7, 60]))
        sent = rng.choice([0, 1, 9])
        found.append(Observation(rng.choice(WAYS), begin_ns, end_ns, sent, rng.choice([0, 0, sent]), "h0"))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_and_counted_is_what_a_list_of_all_rows_says(seed: int) -> None:
    rng = random.Random(seed)
    window = EvidenceWindow(TABLE, PERIOD_NS, PERIODS)
    told: list[Observation] = []
    now_ns = 0
    for _ in range(12):
        now_ns += PERIOD_NS * rng.choice([1, 1, 1, 2, 5])
        rows = rows_of(rng, now_ns)
        window.add(rows, now_ns)
        told += sorted((row for row in rows if row.sent), key=lambda row: row.end_ns)
        oldest_ns = (now_ns // GRAIN_NS - BINS + 1) * GRAIN_NS
        kept = [row for row in told if row.end_ns > oldest_ns]
        assert list(window.lossy) == [row for row in kept if row.lost]
        onset_ns = rng.randint(0, now_ns + GRAIN_NS)
        since = [row for row in kept if row.begin_ns >= onset_ns or (row.lost and row.end_ns > onset_ns)]
        assert list(window.rows_since(onset_ns)) == since[::-1]
        first_ns = max(-(-onset_ns // GRAIN_NS) * GRAIN_NS, oldest_ns)
        clean = [row for row in told if not row.lost and row.begin_ns >= first_ns]
        for element in range(TABLE.elements):
            crossing = sum(row.sent for row in clean if element in row.route)
            assert window.clean_since(element, onset_ns) == crossing


def test_rows_that_end_a_period_late_are_among_those_since() -> None:
    window = EvidenceWindow(TABLE, PERIOD_NS, PERIODS)
    early, late = (Observation(WAYS[0], 100, end_ns, 3, 1, "h0") for end_ns in (110, 140))
    window.add([late], 140)
    window.add([early], 150)
    assert list(window.rows_since(109)) == [early, late]
    assert list(window.rows_since(110)) == [late]


def test_periods_of_a_few_nanoseconds_have_bins() -> None:
    window = EvidenceWindow(TABLE, 3, 2)
    window.add([Observation(WAYS[0], 1, 1, 5, 0, "h0"), Observation(WAYS[0], 2, 2, 3, 0, "h0")], 2)
    assert [window.clean_since(WAYS[0][0], onset_ns) for onset_ns in range(4)] == [8, 8, 3, 0]


@pytest.mark.parametrize(
    ("row", "since", "arrived"),
    [
        (Observation(WAYS[0], 0, 100, 50, 10, "h0"), 75, 10),
        (Observation(WAYS[0], 20, 100, 50, 10, "h0"), 80, 10),
        (Observation(WAYS[0], 20, 100, 50, 10, "h0"), 20, 40),
        (Observation(WAYS[0], 20, 100, 50, 10, "h0"), 100, 0),
        (Observation(WAYS[0], 20, 100, 50, 10, "h0"), 130, 0),
        (Observation(WAYS[0], 20, 100, 5, 9, "h0"), 0, 0),
        (Observation(WAYS[0], 40, 40, 5, 2, "h0"), 40, 3),
    ],
)
def test_arrivals_are_spread_evenly_over_a_row(row: Observation, since: int, arrived: float) -> None:
    assert row.arrived_since(since) == arrived


def test_a_loss_whose_time_is_unknown_was_at_the_end() -> None:
    assert Observation(WAYS[0], 0, 100, 5, 1, "h0").onset_ns == 100
    assert Observation(WAYS[0], 0, 100, 5, 1, "h0", 30).onset_ns == 30
