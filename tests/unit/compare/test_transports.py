"""Transports side by side: the rows in seconds, in round trips, and on a fabric of 13 us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrc_testbed.testbed.app.comparison import PAGE_FILE, compare_folders
from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.runs import load_runs
from mrc_testbed.testbed.compare.table import WIDTH, render_comparison
from mrc_testbed.testbed.compare.transports import fault_outages, side_by_side, variant_rows
from mrc_testbed.testbed.pages.comparison.outages import TimeAxis, stall_panels
from mrc_testbed.testbed.report.transport_words import transport_words
from mrc_testbed.testbed.report.trust import biases
from mrc_testbed.testbed.rundir.results import COMPARE_FILE
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from tests.unit.checks.test_folder import HOSTS, SCENARIO, RunFolder, at, fault
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall, watched
from tests.unit.recorded import record_run

TCP = "transport: tcp\njudge: [mrc]\n"
DYING = "transport: roce\nroce: {timeout: 16}\njudge: [mrc]\n"


def variant(keys: str, *stalls: dict[str, Any], stalled: dict[str, int] | None = None) -> RunFolder:
    """A run over some transport; `keys`: its lines of YAML."""
    folder = watched(*stalls, stalled=stalled)
    folder.scenario = f"{keys}{SCENARIO}"
    assert folder.counters is not None
    for number, host in enumerate(HOSTS):
        folder.counters["hosts"][host]["counters"] |= {"bytes_sent": 1000 + 100 * number, "bytes_delivered": 1000}
    return folder


def three(folder: Path) -> list[Path]:
    """MRC that hardly notices, TCP that stalls past the heal, RoCE that dies in the fault."""
    tcp = variant(TCP, stall("h0", "h1", 3.55, 8.1))
    mrc = variant("", stall("h0", "h1", 3.55, 3.65))
    roce = break_off(variant(DYING, stalled={"a": at(3.6)}))
    return [record_run(folder / name, run) for name, run in (("mrc", mrc), ("tcp", tcp), ("roce", roce))]


@pytest.fixture
def compared(tmp_path: Path) -> Comparison:
    return compare(load_runs(three(tmp_path)))


def text_of(comparison: Comparison) -> str:
    console = Console(width=WIDTH, record=True, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115
    console.print(render_comparison(comparison))
    return console.export_text()


def test_a_row_a_variant_and_none_is_dropped(compared: Comparison) -> None:
    assert side_by_side(compared)
    mrc, tcp, roce = variant_rows(compared)
    assert [row.transport for row in (mrc, tcp, roce)] == ["MRC", "TCP, cubic", "RoCE, lossy"]
    assert [row.routing for row in (mrc, tcp, roce)] == ["SRv6", "ECMP", "ECMP"]
    assert (mrc.first, mrc.worst, mrc.job) == ("1 s", "1.2 s", "lives")
    assert [row.stall.seconds for row in (mrc, tcp, roce)] == ["100 ms", "4.55 s", "800 ms"]
    assert [row.stall.in_rtts for row in (mrc, tcp, roce)] == ["5 T", "228 T", "40 T"]
    assert (roce.job, roce.worst) == ("died at 4.4 s: QP h0->h2: retries", "-")
    assert mrc.wasted == "15 %"
    assert compared.columns[2].verdicts == {"died": 1}
    assert len(compared.columns[2].counted) == 1


def test_on_a_fabric_of_13_us_mrc_goes_by_t_and_others_by_seconds(compared: Comparison) -> None:
    (cut,) = fault_outages(compared)
    assert (cut.name, round((cut.lasted_ns or 0) / 1e9, 3)) == ("cut", 1.001)
    found = [stood for _, stood in cut.groups]
    assert [one.elsewhere for one in found] == ["65 us", "4.55 s", "800 ms"]
    assert [one.died for one in found] == [False, False, True]


@pytest.mark.parametrize(
    ("keys", "stalls", "seconds", "elsewhere"),
    [
        ("", (), "under 40 ms", "under 26 us"),
        (TCP, (), "under 40 ms", "under 40 ms"),
        ("", (stall("h0", "h1", 3.5, 4.6),), "1.1 s", "1.1 s"),  # it waited for the heal: no clock of MRC's
    ],
)
def test_what_is_too_short_to_be_seen_and_what_lasts_as_long_as_the_fault(
    tmp_path: Path, keys: str, stalls: tuple[dict[str, Any], ...], seconds: str, elsewhere: str
) -> None:
    folders = [record_run(tmp_path / "a", variant(keys, *stalls)), record_run(tmp_path / "b", variant(DYING))]
    stood = fault_outages(compare(load_runs(folders)))[0].groups[0][1]
    assert (stood.seconds, stood.elsewhere) == (seconds, elsewhere)


def twice(run: RunFolder) -> RunFolder:
    """The cut of 1 s, and at 6 s another occurrence of 100 ms."""
    later = [("inject", "invoke", 6.0), ("inject", "ok", 6.0), ("heal", "invoke", 6.1), ("heal", "ok", 6.1)]
    run.history[6:6] = [fault(op, kind, seconds, cycle=1) for op, kind, seconds in later]
    return run


@pytest.mark.parametrize(
    ("begin", "elsewhere"),
    [(3.55, "78 us"), (6.0, "120 ms")],  # in the long occurrence it was MRC's own clock, in the short one the heal
)
def test_a_stall_is_set_beside_the_occurrence_that_it_was_in(tmp_path: Path, begin: float, elsewhere: str) -> None:
    runs = [twice(variant("", stall("h0", "h1", begin, begin + 0.12))), variant(DYING)]
    found = compare(load_runs([record_run(tmp_path / str(n), run) for n, run in enumerate(runs)]))
    (cut,) = fault_outages(found)
    assert (cut.groups[0][1].seconds, cut.groups[0][1].elsewhere) == ("120 ms", elsewhere)
    assert variant_rows(found)[0].stall.elsewhere == elsewhere
    assert (cut.lasted, cut.lasted_ns, cut.shortest_ns) == ("100 ms to 1 s", 1_001_000_000, 100_000_000)


def test_the_run_with_the_longest_stall_says_whether_it_died(tmp_path: Path) -> None:
    runs = [
        variant(DYING, stall("h0", "h1", 3.55, 8.1)),
        break_off(variant(DYING, stalled={"a": at(3.6)})),
        variant(TCP),
    ]
    found = compare(load_runs([record_run(tmp_path / str(n), run) for n, run in enumerate(runs)]))
    roce = fault_outages(found)[0].groups[0][1]
    assert (roce.seconds, roce.died) == ("4.55 s", False)
    assert variant_rows(found)[0].job == "1 of 2 died"


def test_of_repeats_that_lack_a_figure_it_says_how_many_have_it(tmp_path: Path) -> None:
    runs = [variant(TCP, stall("h0", "h1", 3.55, 8.1)), RunFolder(scenario=f"{TCP}{SCENARIO}"), variant("")]
    row = variant_rows(compare(load_runs([record_run(tmp_path / str(n), run) for n, run in enumerate(runs)])))[0]
    assert row.stall.seconds == "4.55 s (1 of 2 runs)"
    assert row.wasted.endswith(" % (1 of 2 runs)")
    assert row.first == "1 s"


def test_runs_that_did_not_watch_are_unknown_and_not_zero(tmp_path: Path) -> None:
    blind = RunFolder(scenario=f"{TCP}{SCENARIO}")
    folders = [record_run(tmp_path / "a", variant("")), record_run(tmp_path / "b", blind)]
    row = variant_rows(compare(load_runs(folders)))[1]
    assert (row.stall.seconds, row.stall.in_rtts, row.stall.elsewhere, row.wasted) == ("?", "?", "?", "-")


def test_runs_of_one_transport_are_not_set_side_by_side(tmp_path: Path) -> None:
    keys = [f"endpoint: {{ev_active: {number}}}\n" for number in (1, 2)]
    found = compare(load_runs([record_run(tmp_path / str(n), variant(one)) for n, one in enumerate(keys)]))
    assert not side_by_side(found)
    assert "How far to trust" not in text_of(found)


def test_the_terminal_has_the_rows_and_the_biases(compared: Comparison) -> None:
    text = text_of(compared)
    head = next(line for line in text.splitlines() if "wasted" in line and "job" in line)
    assert head.split()[-5:] == ["T", "goodput", "kept", "wasted", "job"]
    assert "RoCE, lossy" in text
    assert "died at 4.4 s" in text
    assert "1538 times the 13 us of a data centre" in text
    begin = text.index("How far to trust these figures:")
    assert text[begin:].split("\n\n")[0].count("\n- ") == 4


def test_roce_is_never_called_that_alone() -> None:
    words = {
        "roce: {timeout: 20}": "RoCE, lossy",
        "roce: {buffers: deep}": "RoCE, deep buffers",
        "roce: {recovery: selective}": "RoCE, lossy, selective",
        "roce: {recovery: lossless, buffers: deep}": "RoCE, deep buffers, any order",
    }
    for keys, said in words.items():
        assert transport_words(load_scenario_text(f"transport: roce\n{keys}\n{SCENARIO}  []\n")) == said
    assert transport_words(load_scenario_text(f"transport: tcp\n{SCENARIO}  []\n")) == "TCP, cubic"


def scenarios(*transports: str, rtt: str = "20ms") -> list[Scenario]:
    text = SCENARIO.replace("rtt: 20ms", f"rtt: {rtt}")
    return [load_scenario_text(f"transport: {one}\n{text}  []\n") for one in transports]


def test_biases_are_numbers_of_this_fabric() -> None:
    found = {bias.about: bias.text for bias in biases(scenarios("mrc", "roce", "tcp"))}
    assert "K = 1538" in found["clocks"]
    assert "of 1.07 s is 53.7 T here and 82596 there" in found["clocks"]
    assert "of 200 ms is 10 T here and 15385 there" in found["clocks"]
    assert "MRC's bias" in found["clocks"]
    shape = scenarios("roce")[0].shape()
    here = 50e6 * 0.02 / 8 / shape.wire_bytes
    assert found["packets"].startswith(f"{here:.0f} packets")
    assert f"kind to go-back-N by {158.7 / here:.1f}" in found["packets"]
    assert "RoCE, lossy 4096 of 4174 bytes" in found["headers"]
    assert "a T1 carries 1/2 of all traffic there and 1/4 of it as written" in found["layout"]
    twice = {bias.about: bias.text for bias in biases(scenarios("tcp", rtt="40ms"))}
    assert "K = 3077" in twice["clocks"]
    assert "MRC" not in twice["clocks"]
    assert "go-back-N" not in twice["packets"]
    assert "no PFC" not in twice


@pytest.mark.parametrize("scale", ["1000", "real"])
def test_timers_count_as_written_at_any_scale(scale: str) -> None:
    """At this scale RoCE's timeout is of a lower code; a data centre has that of code 18."""
    text = f"world: virtual\ntransport: roce\n{SCENARIO.replace('planes: 2', 'planes: 1')}  []\n"
    written, run = load_scenario_text(text), load_scenario_text(f"scale: {scale}\n{text}").at_scale()
    assert run.at_scale() is run
    assert run.roce.timeout < 13
    here, there = ({bias.about: bias for bias in biases([one])} for one in (run, written))
    assert "of 1.07 s is 53.7 T here and 82596 there" in here["clocks"].text
    assert f"T is 20 ms here as written (this run is {run.speed} times faster, its timers too)" in here["clocks"].text
    assert "1538 times the 13 us" in here["clocks"].short
    assert {**here, "clocks": ""} == {**there, "clocks": ""}


def test_an_outage_of_a_scaled_baseline_is_as_long_there_as_it_would_be_as_written(tmp_path: Path) -> None:
    keys = "world: virtual\nscale: 1000\ntransport: roce\n"
    runs = [variant(keys), variant(keys, stall("h0", "h1", 3.55, 3.5584))]
    loaded = [load_runs([record_run(tmp_path / str(number), run)]) for number, run in enumerate(runs)]
    found = [variant_rows(compare(one, with_inconclusive=True))[0] for one in loaded]
    assert [(row.stall.seconds, row.stall.elsewhere) for row in found] == [
        ("under 40 us", "under 40 ms"),
        ("8.4 ms", "8.4 s"),
    ]


@pytest.mark.parametrize(
    ("keys", "ends"),
    [
        ("roce: {}", "full ports drop, which is unkind to RoCE"),
        (
            "roce: {buffers: deep, congestion_control: dcqcn-vendor}",
            "deep queues grow, which is kind to RoCE's goodput",
        ),
        ("roce: {congestion_control: none}", ""),
        ("world: virtual\nroce: {buffers: pfc}", ""),
    ],
)
def test_dcqcn_without_pfc_is_not_told_of_an_incast(keys: str, ends: str) -> None:
    baseline = load_scenario_text(f"transport: roce\n{keys}\n{SCENARIO}  []\n")
    found = [bias for bias in biases([*scenarios("mrc", "tcp"), baseline]) if bias.about == "marks for DCQCN"]
    assert len(found) == bool(ends)
    assert all(ends in said for bias in found for said in (bias.short, bias.text))
    assert all("all above 0.8 BDP" in bias.text for bias in found)


def test_mrc_alone_and_a_fabric_without_t_have_no_such_bias() -> None:
    assert biases(scenarios("mrc")) == []


def test_the_axis_of_seconds_is_logarithmic() -> None:
    axis = TimeAxis(10e6, 10e9)
    assert [axis.place(ns) for ns in (1e6, 10e6, 100e6, 10e9, 1e12)] == [0, 0, pytest.approx(33.33), 100, 100]
    assert axis.marks == [("10 ms", 0), ("100 ms", pytest.approx(33.33)), ("1 s", pytest.approx(66.67)), ("10 s", 100)]
    assert [text for text, _ in TimeAxis(20e6, 200e6).marks] == ["20 ms", "50 ms", "100 ms", "200 ms"]


def test_bars_end_where_the_stalls_do(compared: Comparison) -> None:
    (panel,), axis = stall_panels(compared)
    places = [bar.at for bar in panel.bars]
    assert places == [axis.place(ns) for ns in (100e6, 4.55e9, 800e6)]
    assert panel.lasted_at == axis.place(1.001e9)
    assert len({bar.colour for bar in panel.bars}) == 3


def test_page_and_json_have_all_of_it(tmp_path: Path) -> None:
    folder = compare_folders(three(tmp_path), tmp_path / "out").folder
    page = (folder / PAGE_FILE).read_text()
    for said in (
        "How far to trust this comparison",
        "Seconds without progress",
        "RoCE, lossy",
        "then died",
        "K = 1538",
    ):
        assert said in page
    found = json.loads((folder / COMPARE_FILE).read_text())["variants"]
    assert [row["job"][:4] for row in found["rows"]] == ["live", "live", "died"]
    assert [one["ns"] for one in found["faults"][0]["stalls"]] == [100_000_000, 4_550_000_000, 800_000_000]
    assert len(found["trust"]) == 6
