"""The benchmark of slowdown by size: its scenario, and its table."""

from __future__ import annotations

from benchmarks.slowdown import flow_times, percentile, rows, scenario_text
from mrc_testbed.testbed.rundir.tables import FlowTime


def flow(size: int, slowdown: float) -> FlowTime:
    return FlowTime("h0", "h0->h1", 0, "", size, 0, 1, 1, 1, slowdown)


def test_a_row_is_a_bin_of_sizes() -> None:
    found = [flow(30_000, 1.0), flow(100, 3.0), flow(30_001, 5.0), flow(10**9, 2.5)]
    assert list(rows(80, found)) == [
        "| 80 % | up to 30 KB | 2 | 2.00 | 1.00 | 3.00 | 3.00 | 5.00 |",
        "| 80 % | up to 200 KB | 1 | 5.00 | 5.00 | 5.00 | 5.00 | 5.00 |",
        "| 80 % | larger | 1 | 2.50 | 2.50 | 2.50 | 2.50 | 5.00 |",
    ]


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([1, 2, 3, 4], percent) for percent in (50, 75, 99)] == [2, 3, 4]


def test_a_small_run_has_about_as_many_flows_as_asked_and_none_is_faster_than_alone() -> None:
    found = flow_times(scenario_text("hadoop", 50, 40, 1))
    assert 20 < len(found) < 60
    assert min(one.slowdown for one in found) >= 0.98
