"""Flows of traces in virtual time, beside what can be reckoned by hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.figure import evaluate_figure
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.tables import FlowTime
from mrc_testbed.testbed.scenario import load_scenario

SCENARIO = """
name: traced
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 25mbit, rtt: 20ms}
workload: [{trace: {file: flows.csv}}]
"""
Row = tuple[float, str, str, int]


def ran(folder: Path, rows: Sequence[Row], *changes: str, text: str = SCENARIO) -> RunRecord:
    folder.mkdir(exist_ok=True)
    lines = ["start_s,src,dst,bytes", *(",".join(map(str, row)) for row in rows)]
    (folder / "flows.csv").write_text("\n".join(lines), encoding="utf-8")
    (folder / "my.yaml").write_text(text, encoding="utf-8")
    scenario = load_scenario(folder / "my.yaml", changes)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, folder / "out", True, PatientConsole(file=nowhere))
    assert outcome.exit_code is ExitCode.PASS
    assert outcome.folder is not None
    return load_record(outcome.folder)


def times(record: RunRecord) -> list[FlowTime]:
    return sorted(record.flow_times, key=lambda row: (row.begin_ns, row.host))


@pytest.mark.parametrize("changes", [[], ["transport=roce"], ["fabric.planes=1"], ["scale=real"]])
def test_a_flow_alone_has_a_slowdown_of_one(tmp_path: Path, changes: list[str]) -> None:
    """With hosts whose turns are not late: those alone made 11 % of one flow of a byte."""
    sizes = (1, 4096, 30_000, 65_536, 1_000_000, 4_000_000)
    rows = [(1 + 3.0 * turn, "h0", dst, size) for turn, size in enumerate(sizes) for dst in ("h1", "h4")]
    rows = [(start + 1.5 * (dst == "h4"), src, dst, size) for start, src, dst, size in rows]
    found = times(ran(tmp_path, rows, "virtual.lateness=0s", *changes))
    assert [(row.flow[4:], row.bytes) for row in found] == [(dst, size) for _, _, dst, size in rows]
    assert all(0.995 <= row.slowdown <= 1.02 for row in found), [(row.bytes, row.slowdown) for row in found]


@pytest.mark.parametrize("count", [2, 3])
def test_flows_that_share_a_receiver_take_as_many_times_as_long(tmp_path: Path, count: int) -> None:
    size = 8 << 20
    found = times(ran(tmp_path, [(0.1, f"h{number}", "h7", size) for number in range(count)]))
    assert [row.slowdown for row in found] == pytest.approx([count] * count, rel=0.1)


def test_flows_of_a_pair_wait_for_each_other_on_one_qp_and_share_on_several(tmp_path: Path) -> None:
    rows = [(0.1, "h0", "h4", 4 << 20), (0.1, "h0", "h4", 4 << 20)]
    one, other = [
        sorted(row.slowdown for row in ran(tmp_path, rows, f"workload.0.trace.qps={n}").flow_times) for n in (1, 2)
    ]
    assert one == pytest.approx([1, 2], rel=0.06)
    assert other == pytest.approx([2, 2], rel=0.06)


def test_a_short_flow_waits_behind_a_long_one_only_where_there_is_one_qp(tmp_path: Path) -> None:
    rows = [(0.1, "h0", "h4", 8 << 20), (0.2, "h0", "h4", 4096)]
    behind, beside = [times(ran(tmp_path, rows, f"workload.0.trace.qps={qps}"))[1].slowdown for qps in (1, 4)]
    assert behind > 40
    assert beside < 3


def test_figures_are_of_what_the_scope_says(tmp_path: Path) -> None:
    rows = [(0.1, "h0", "h4", 4096), (0.5, "h0", "h4", 1 << 20), (1.5, "h1", "h5", 4096)]
    record = ran(tmp_path, rows, "workload.0.trace.bins={small: 4KiB}")
    found = {row.bytes: row for row in record.flow_times}

    def value(text: str, unit: str = "ns") -> float | None:
        return evaluate_figure(record, parse_figure(text), unit).value

    assert value("flow_time.max") == value("flow_time.max of h0->h4") == found[1 << 20].duration_ns
    assert value("flow_time.max of small") == max(row.duration_ns for row in record.flow_times if row.bytes == 4096)
    assert value("slowdown.max of h1->h5", "") == times(record)[2].slowdown
    assert value("flow_time.max from 0s to 400ms") == times(record)[0].duration_ns


@pytest.mark.nightly
def test_slowdown_grows_with_load_and_with_size(tmp_path: Path) -> None:
    """The shape of every published figure of this kind: at each load the tail of short flows is below that of long
    ones, and both grow with it."""
    bins = "bins: {short: 10KB, medium: 100KB, long: 10MB}"
    found = {}
    for load in ("30%", "50%", "80%"):
        keys = f"sizes: hadoop, load: {load}, for: 4s, {bins}"
        text = SCENARIO.replace("trace: {file: flows.csv}", f"poisson: {{{keys}}}")
        record = ran(tmp_path / load, [], "scale=real", text=text)
        figures = [f"slowdown.{stat} of {size}" for stat in ("median", "p99") for size in ("short", "long")]
        found[load] = [evaluate_figure(record, parse_figure(figure), "").value or 0 for figure in figures]
    assert all(low < high for low, high in zip(found["30%"], found["50%"], strict=True)), found
    assert all(low < high for low, high in zip(found["50%"], found["80%"], strict=True)), found
    assert all(1 < short < long for *_, short, long in found.values()), found
