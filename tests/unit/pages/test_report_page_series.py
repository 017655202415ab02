"""Lines, counts and states over time as the page has them: sums and extremes survive whatever is merged."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.pages.report.clock import Clock, clock_of
from mrc_testbed.testbed.pages.report.downsample import MOST_VALUES, downsampled, groups
from mrc_testbed.testbed.pages.report.goodput import FROM_FLOWS, FROM_PORTS, MOST_LINES, goodput_views
from mrc_testbed.testbed.pages.report.losses import losses
from mrc_testbed.testbed.pages.report.samples import PortSamples
from mrc_testbed.testbed.pages.report.variation import MIXED, Timeline, bounded
from mrc_testbed.testbed.rundir import tables
from mrc_testbed.testbed.rundir.packed import PackedRows
from mrc_testbed.testbed.rundir.tables import CsvTable, PortSample, Received, RowT
from tests.unit.checks.test_folder import HOSTS, RunFolder, at

FLOWS = """\
name: two
fabric: {planes: 2, t0_groups: 1, t1: 0, hosts_per_t0: 4, port_rate: 25mbit, rtt: 20ms}
workload:
  - write: {from: h0, to: h1, qps: 2, for: 1s}
  - write: {from: h2, to: h3, for: 1s}
expect:
"""


def clock(record: RunRecord) -> Clock:
    found = clock_of(record)
    assert found
    return found


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return load_record(RunFolder().write(tmp_path))


def rows(flow: str, qp: int, stretches: list[int], last: bool = True) -> list[Received]:
    """Bytes in stretches of 100 ms from the workload's start."""
    host, end = flow.partition("->")[2], len(stretches) - 1 if last else None
    return [
        Received(host, flow, qp, at(n / 10), at((n + 1) / 10), moved, 1, 0, int(n == end))
        for n, moved in enumerate(stretches)
    ]


def of_flows(record: RunRecord, received: list[Received], tmp_path: Path) -> RunRecord:
    folder = RunFolder(scenario=FLOWS)
    folder.completions, folder.history = [], [line for line in folder.history if "fault" not in line]
    path = tmp_path / "flows"
    path.mkdir()
    made = load_record(folder.write(path))
    object.__setattr__(made, "received", packed(tables.FLOWS, received))
    return made


def test_goodput_of_flows_is_summed_over_qps_and_by_receiver(record: RunRecord, tmp_path: Path) -> None:
    received = [*rows("h0->h1", 0, [125_000, 250_000]), *rows("h0->h1", 1, [125_000, 0]), *rows("h2->h3", 0, [0])]
    made = of_flows(record, received, tmp_path)
    views = {view["key"]: view for view in goodput_views(made, PortSamples(), clock(made))}
    assert list(views) == ["total", "hosts"]
    assert views["total"]["source"] == FROM_FLOWS
    assert (views["total"]["from"], views["total"]["grain"]) == (0, 0.1)
    # 250 kB in 100 ms are 20 Mb/s; h2->h3 had ended before the second stretch.
    assert views["total"]["series"] == [{"name": "total", "v": [20, 20]}]
    assert views["hosts"]["series"] == [{"name": "h1", "v": [20, 20]}, {"name": "h3", "v": [0, None]}]


def test_the_short_last_stretch_of_a_flow_is_no_collapse(record: RunRecord, tmp_path: Path) -> None:
    last = Received("h1", "h0->h1", 0, at(0.1), at(0.16), 75_000, 1, 0, 1)
    tiny = Received("h3", "h2->h3", 0, at(0.1), at(0.101), 75_000, 1, 0, 1)
    received = [*rows("h0->h1", 0, [125_000], last=False), last, *rows("h2->h3", 0, [125_000], last=False), tiny]
    made = of_flows(record, received, tmp_path)
    hosts = goodput_views(made, PortSamples(), clock(made))[1]["series"]
    assert hosts == [{"name": "h1", "v": [10, 10]}, {"name": "h3", "v": [10, None]}]


def packed(table: CsvTable[RowT], rows: Sequence[RowT]) -> PackedRows[RowT]:
    made = PackedRows(table)
    made.add([*zip(*rows, strict=True)])
    return made


def samples(record: RunRecord, count: int, grain_s: float = 0.2) -> PortSamples:
    """Host n receives n+1 kB at each port between two readings, ten times as much in the third."""
    times = [at(n * grain_s) for n in range(count)]
    received = {}
    for n, host in enumerate(HOSTS):
        steps = [(n + 1) * 1000 * (10 if turn == 2 else 1) for turn in range(count - 1)]
        for plane in range(record.scenario.shape().planes):
            received[host, f"port{plane}"] = array("q", [sum(steps[:turn]) for turn in range(count)])
    return PortSamples(times, received)


def test_a_job_of_steps_has_what_nic_ports_received(record: RunRecord) -> None:
    views = {view["key"]: view for view in goodput_views(record, samples(record, 4), clock(record))}
    assert list(views) == ["port-total", "planes", "port-hosts"]
    assert {view["source"] for view in views.values()} == {FROM_PORTS}
    # 10 kB a plane in 200 ms are 0.4 Mb/s.
    assert views["planes"]["series"] == [{"name": f"plane {plane}", "v": [0.4, 0.4, 4]} for plane in range(2)]
    assert views["port-total"]["series"] == [{"name": "total", "v": [0.8, 0.8, 8]}]
    assert views["port-hosts"]["series"][3] == {"name": "h3", "v": [0.32, 0.32, 3.2]}
    assert views["planes"]["t"] == [0, 0.2, 0.4]


def test_a_long_run_is_downsampled_and_its_extremes_stay(record: RunRecord) -> None:
    count = 3 * MOST_VALUES + 1
    view = goodput_views(record, samples(record, count), clock(record))[0]
    (line,) = view["series"]
    assert MOST_VALUES < len(line["v"]) == len(view["t"]) < MOST_VALUES + 30
    assert (view["step"], view["finer"]) == (0.6, 0.2)
    assert (line["lo"][0], line["hi"][0]) == (0.8, 8)
    assert line["v"][0] == pytest.approx((0.8 + 0.8 + 8) / 3, rel=1e-3)


def test_near_a_fault_a_long_run_keeps_every_value(record: RunRecord) -> None:
    """The fault is there from 2 to 3 s, and both ends of it are looked at from 0.5 s before to 2.5 s after."""
    (outage,) = outages(record)
    assert outage.healed_ns
    first, last = ((t_ns - clock(record).start_ns) / 1e9 for t_ns in (outage.invoked_ns, outage.healed_ns))
    view = goodput_views(record, samples(record, 3 * MOST_VALUES + 1), clock(record))[0]
    lengths = {begin: round(end - begin, 4) for begin, end in pairwise([*view["t"], view["to"]])}
    near = [length for begin, length in lengths.items() if first - 0.5 < begin < last + 2.3]
    assert set(near) == {0.2}
    assert {length for begin, length in lengths.items() if begin > last + 3} == {0.6}


@given(st.integers(0, 500), st.lists(st.tuples(st.integers(-9, 500), st.integers(0, 60))), st.integers(1, 50))
def test_stretches_that_are_fine_stay_so_as_far_as_they_may(
    count: int, stretches: list[tuple[int, int]], most: int
) -> None:
    fine = [range(begin, begin + length) for begin, length in stretches]
    ends = groups(count, fine, most, most_fine=70)
    assert ends == sorted(set(ends))
    assert (ends[0], ends[-1]) == (0, count)
    assert len(ends) - 1 <= most + 70 + 2 * len(fine)
    if fine and len(fine[0]) <= 70:
        assert set(fine[0]) & set(range(count)) <= set(ends)


def test_too_many_lines_become_a_median_with_a_range(record: RunRecord) -> None:
    from mrc_testbed.testbed.pages.report.goodput import _crowd

    lines = [{"name": f"h{n}", "v": [n, None]} for n in range(MOST_LINES + 1)]
    assert _crowd(lines) == {"name": "median of 17", "v": [8, None], "lo": [0, None], "hi": [16, None]}


VALUES = st.lists(st.none() | st.floats(0, 1e6), min_size=1, max_size=60).filter(any)


@given(VALUES, st.integers(1, 20))
def test_thinning_hides_neither_the_least_nor_the_greatest(values: list[float | None], most: int) -> None:
    line = downsampled(values, groups(len(values), most=most))
    assert len(line["v"]) <= most
    known = [value for value in values if value is not None]
    for key, pick in (("lo", min), ("hi", max)):
        shown = [value for value in line.get(key, line["v"]) if value is not None]
        assert pick(shown) == pytest.approx(pick(known), rel=1e-3)


def test_counts_are_put_between_the_readings_and_summed(record: RunRecord) -> None:
    shown = losses(record, PortSamples(), clock(record))
    lost = next(group for group in shown["groups"] if group["title"].startswith("Data packets taken for lost"))
    # h0 told 0, 2, 12 and 13 at 1, 3, 5 and 7 s, and 14 in the end.
    row = next(row for row in lost["rows"] if row["label"] == "h0")
    assert row["total"] == 14
    assert row["bins"][:3] == [(10, 2), (20, 10), (30, 1)]
    assert shown["grain"] == 0.2


def test_a_folder_without_ports_csv_has_totals_without_times(record: RunRecord) -> None:
    assert record.books
    assert not losses(record, PortSamples(), clock(record))["untimed"], "nothing was counted, so nothing is unknown"
    record.books.ports["p0-t0-0", "up1"]["out_trimmed"] = 7  # type: ignore[index]
    shown = losses(record, PortSamples(), clock(record))
    assert shown["untimed"]
    trims = next(group for group in shown["groups"] if group["title"].startswith("Trimmed to headers"))
    assert trims["rows"] == [{"label": "p0-t0-0 \u2192 p0-t1-1", "total": 7, "bins": []}]


def test_ports_csv_says_where_and_when(record: RunRecord) -> None:
    samples = (PortSample(at(1), "p0-t0-0", "up1", 0, 5, 0, 0, 0), PortSample(at(2), "p0-t0-0", "up1", 0, 9, 0, 3, 0))
    object.__setattr__(record, "ports", packed(tables.PORTS, samples))
    groups = {group["title"]: group for group in losses(record, PortSamples(), clock(record))["groups"]}
    assert groups["Trimmed to headers, by switch port"]["rows"] == [
        {"label": "p0-t0-0 \u2192 p0-t1-1", "total": 9, "bins": [(5, 5), (7, 4)]}
    ]
    assert (
        groups["Dropped by injected loss, data and control, by link and direction"]["rows"][0]["label"]
        == "p0-t1-1 \u2192 p0-t0-0"
    )


TIMELINE = Timeline("row", "G", (1.0, 1.01, 1.02, 1.03, 2.0, 2.01), "SGSGBG")


def test_what_fits_is_not_touched() -> None:
    assert bounded({"a": [TIMELINE]}, most=6) == ({"a": [TIMELINE]}, 0, 0)


def test_short_stays_in_and_out_of_rest_become_one_and_losses_stay() -> None:
    groups, grain_s, left_out = bounded({"a": [TIMELINE]}, most=5)
    assert list(groups["a"][0].times) == [1.0, 1.03, 2.0, 2.01]
    assert groups["a"][0].states == f"{MIXED}GBG"
    assert (grain_s, left_out) == (0.05, 0)


def test_the_most_restless_rows_go_last_and_are_counted() -> None:
    restless = Timeline("restless", "G", range(20), "BG" * 10)
    groups, _, left_out = bounded({"a": [TIMELINE, restless]}, most=5)
    assert ([row.label for row in groups["a"]], left_out) == (["row"], 1)
