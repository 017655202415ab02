"""Rows of counts, whatever part of them is kept apart."""

from __future__ import annotations

from random import Random

from mrc_testbed.testbed.switching.port_counts import COUNTS
from mrc_testbed.testbed.virtual.port_row import BYTES_AT, PortRow


def test_a_row_is_what_was_counted_place_by_place() -> None:
    random, row, expected = Random(1), PortRow(), [0] * COUNTS
    for _ in range(1000):
        at, size = random.randrange(BYTES_AT), random.randrange(64, 4200)
        row.count(at, size)
        expected[at] += 1
        expected[BYTES_AT + at] += size
    assert row.row() == expected


def test_a_row_that_was_read_does_not_change() -> None:
    row = PortRow()
    before = row.row()
    row.count(0, 100)
    assert before == [0] * COUNTS
