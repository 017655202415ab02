"""Counters of a moment, kept small."""

from __future__ import annotations

import sys

import pytest

from testbed.checks.counter_row import CounterRow


def test_a_row_reads_as_the_mapping_it_was_made_of() -> None:
    counters = {"data_sent": 7, "retransmitted": 0, "cpu_ns": 1 << 62}
    row = CounterRow(counters)
    assert row == counters
    assert (row["data_sent"], row.get("unheard_of", 3), "unheard_of" in row, len(row)) == (7, 3, False, 3)
    assert list(row) == list(counters)
    with pytest.raises(KeyError, match="unheard_of"):
        row["unheard_of"]


def test_rows_with_the_same_names_in_another_order_are_told_apart() -> None:
    assert CounterRow({"a": 1, "b": 2}) == CounterRow({"b": 2, "a": 1}) != CounterRow({"a": 2, "b": 1})


def test_a_row_takes_a_small_part_of_what_a_dict_takes() -> None:
    counters = {f"counter_{number}": 1000 + number for number in range(90)}
    row = CounterRow(counters)
    as_dict = sys.getsizeof(counters) + sum(map(sys.getsizeof, counters.values()))
    assert sys.getsizeof(row) + sys.getsizeof(row._counts) < as_dict / 5


@pytest.mark.parametrize("bad", [1.5, "7", None, 1 << 63])
def test_what_is_no_counter_is_refused(bad: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        CounterRow({"data_sent": bad})  # type: ignore[dict-item]
