"""What the benchmark of routing makes of its runs, without a fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.routing import CASES, RATE_HZ, Outcome, Probes, together


def test_pieces_add_up_and_cases_stay_apart(tmp_path: Path) -> None:
    kept = tmp_path / "runs.jsonl"
    first, other = CASES[:2]
    piece, more, foreign = (
        [Outcome(4, 0.13, 1.3)],
        [Outcome(5, 0.14, 1.2), Outcome(0, 0.0, 1.1)],
        [Outcome(1, 8.5, 2.0)],
    )
    assert together(first, piece, kept) == piece
    assert together(other, foreign, kept) == foreign
    assert together(first, more, kept) == [*piece, *more]


def test_a_gap_begins_with_the_last_datagram_before_the_fault_however_long_before_it_that_came() -> None:
    probes = Probes.__new__(Probes)
    fault, period = 10.0, 1 / RATE_HZ
    before = [fault - 1.2 * period - n * period for n in range(50, -1, -1)]
    probes.arrivals = {(0, 1): [*before, 16.0, 16.0 + period], (1, 1): before}
    assert list(probes.gaps(0, fault)) == [pytest.approx(6 + 0.2 * period)]
