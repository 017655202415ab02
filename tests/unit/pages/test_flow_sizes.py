"""Groups of flows by size, and what pages draw of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.flow_times import by_size
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.pages.report.flow_sizes import flow_sizes
from mrc_testbed.testbed.pages.slowdown import SlowdownLine, slowdown_drawing
from mrc_testbed.testbed.rundir.packed import PackedRows
from mrc_testbed.testbed.rundir.tables import FLOW_TIMES
from mrc_testbed.testbed.scenario import load_scenario_text

SCENARIO = "{name: flows, workload: [{write: {from: h0, to: h1, for: 2s}}]}"


def record_of(flows: list[tuple[int, float]]) -> RunRecord:
    rows = PackedRows(FLOW_TIMES)
    zeros = ("1", "2", "1", "1")
    cells = [("h0", "h0->h1", str(at), "", str(size), *zeros, str(slow)) for at, (size, slow) in enumerate(flows)]
    if cells:
        rows.add(list(zip(*cells, strict=True)))
    return RunRecord(Path(), load_scenario_text(SCENARIO), flow_times=rows)


def test_groups_have_as_many_flows_and_no_size_in_two() -> None:
    flows = [(size, size / 10) for size in range(1, 1001)]
    found = by_size(record_of(flows[::-1]))
    assert [(one.least, one.most, one.flows) for one in found[:2]] == [(1, 100, 100), (101, 200, 100)]
    assert len(found) == 10
    assert (found[0].p50, found[0].p95, found[0].p99, found[0].worst) == pytest.approx((5.05, 9.5, 9.9, 10))
    same = by_size(record_of([(100, 1.0)] * 50 + [(200, 3.0)] * 50))
    assert [(one.least, one.most, one.flows, one.worst) for one in same] == [(100, 100, 50, 1), (200, 200, 50, 3)]


def test_few_flows_are_one_group_and_none_are_no_section() -> None:
    assert [one.flows for one in by_size(record_of([(5, 1.0), (7, 2.0)]))] == [2]
    assert flow_sizes(record_of([])) is None


def test_the_picture_has_a_line_and_a_name_for_each() -> None:
    lines = [SlowdownLine("<one>", [(100, 1.0), (1e6, 20.0)], "red"), SlowdownLine("two", [(5e3, 0.99)], "blue", "2 3")]
    drawn = str(slowdown_drawing(lines))
    assert drawn.count("<polyline") == 2
    assert "&lt;one&gt;" in drawn
    assert ">100 B<" in drawn
    assert ">1 MB<" in drawn
    heights = [float(y) for y in re.findall(r'<text[^>]* y="([0-9.]+)"[^>]*>(?:&lt;one&gt;|two)<', drawn)]
    assert abs(heights[0] - heights[1]) >= 14


def test_the_table_has_a_row_for_each_group() -> None:
    found = flow_sizes(record_of([(size, 2.0) for size in range(1, 101)]))
    assert found is not None
    assert found["rows"][0] == ("1 to 10 B", 10, "2", "2", "2", "2")
    assert len(found["rows"]) == 10
