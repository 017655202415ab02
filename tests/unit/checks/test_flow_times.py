"""Groups of flows by size, and which flows of a trace a scope has."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.flow_times import SizeBin, by_size
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.rundir.packed import PackedRows
from mrc_testbed.testbed.rundir.tables import FLOW_TIMES
from mrc_testbed.testbed.scenario import load_scenario_text

SCENARIO = "{name: flows, workload: [{write: {from: h0, to: h1, for: 2s}}]}"


def record_of(sizes: list[int]) -> RunRecord:
    """Flows of these sizes, each slower than the one before, so that no two figures are the same."""
    rows = PackedRows(FLOW_TIMES)
    zeros = ("1", "2", "1", "1")
    cells = [("h0", "h0->h1", str(at), "", str(size), *zeros, str(at + 0.5)) for at, size in enumerate(sizes)]
    rows.add(list(zip(*cells, strict=True)))
    return RunRecord(Path(), load_scenario_text(SCENARIO), flow_times=rows)


def bins(found: list[SizeBin]) -> list[tuple[int, int, int]]:
    return [(one.least, one.most, one.flows) for one in found]


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([7], [(7, 7, 1)]),
        (range(1, 20), [(1, 19, 19)]),
        (range(1, 21), [(1, 10, 10), (11, 20, 10)]),
        (range(1, 26), [(1, 10, 10), (11, 25, 15)]),
        (range(1, 31), [(1, 10, 10), (11, 20, 10), (21, 30, 10)]),
        ([*[1] * 9, *[2] * 5, *[3] * 16], [(1, 2, 14), (3, 3, 16)]),
        ([*[1] * 10, *[2] * 9, 3], [(1, 1, 10), (2, 3, 10)]),
        ([5] * 40, [(5, 5, 40)]),
        (range(1, 1001), [(100 * n + 1, 100 * n + 100, 100) for n in range(10)]),
        (range(1, 1012), [(102 * n + 1, min(102 * n + 102, 1011), min(102, 1011 - 102 * n)) for n in range(10)]),
    ],
)
def test_groups_have_as_many_flows_and_no_size_is_in_two(sizes: list[int], wanted: list[tuple[int, int, int]]) -> None:
    assert bins(by_size(record_of(list(sizes)))) == wanted


def test_percentiles_are_of_the_group_alone() -> None:
    first, second = by_size(record_of(list(range(1, 21))))
    assert (first.p50, first.p95, first.p99, first.worst) == (5.0, 9.5, 9.5, 9.5)
    assert (second.p50, second.p95, second.p99, second.worst) == (15.0, 19.5, 19.5, 19.5)
