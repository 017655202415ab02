"""Metrics of a run: the two texts, the document and its readings, what is left out, and addresses to serve at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.metrics.exposition import SeriesReading, number_text, open_metrics, preferred, prometheus_text
from mrc_testbed.testbed.metrics.readings import MOST_SERIES, readings
from mrc_testbed.testbed.metrics.registry import FAMILIES, SeriesKind
from mrc_testbed.testbed.metrics.series import RunSeries, final_document, port_labels
from mrc_testbed.testbed.web.metrics_address import MetricsAddress, read_metrics_address
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan

PLAN = build_plan(clos2_shape(2, 2, 2, 2, 12_500_000, 40_000_000))
INFO = dict.fromkeys(FAMILIES["mrc_run"].labels, "x")
PAGE = Path(__file__).parents[3] / "docs/metrics.md"
NAME = re.compile(r"mrc_[a-z0-9_]+")


def series() -> RunSeries:
    return RunSeries(PLAN, INFO, counts_packets=True)


def read(of: RunSeries, now_ns: int = 0, truth: bool = False) -> list[SeriesReading]:
    return readings(of.document(now_ns), port_labels(PLAN), truth)


def value(found: list[SeriesReading], family: str, *labels: str) -> float:
    (reading,) = (one for one in found if one.family == family and one.labels == labels and not one.suffix)
    return reading.value


def test_every_family_has_a_name_of_its_kind() -> None:
    for name, family in FAMILIES.items():
        assert NAME.fullmatch(name), name
        assert not name.endswith(("_total", "_info", "_bucket", "_count", "_sum")), name
        assert family.help.endswith("."), name
        assert not family.unit or name.endswith(f"_{family.unit}"), name
        if family.kind is SeriesKind.STATESET:
            assert family.labels == (name,)


def test_open_metrics_of_a_counter_an_info_and_a_label_with_everything() -> None:
    text = open_metrics(
        [
            SeriesReading("mrc_run", ('a"b', "c\\d", "e\nf", "mrc", "7", "0.1"), 1),
            SeriesReading("mrc_host_timeouts", ("h0",), 3),
            SeriesReading("mrc_host_sent_bytes", ("h0",), 2.5),
        ]
    )
    assert text == (
        "# HELP mrc_run What is run.\n# TYPE mrc_run info\n"
        'mrc_run_info{run="a\\"b",scenario="c\\\\d",world="e\\nf",transport="mrc",seed="7",version="0.1"} 1\n'
        "# HELP mrc_host_sent_bytes Payload sent, also what is sent again.\n# TYPE mrc_host_sent_bytes counter\n"
        '# UNIT mrc_host_sent_bytes bytes\nmrc_host_sent_bytes_total{host="h0"} 2.5\n'
        "# HELP mrc_host_timeouts Retransmission timers that ran out.\n# TYPE mrc_host_timeouts counter\n"
        'mrc_host_timeouts_total{host="h0"} 3\n# EOF\n'
    )


def test_the_older_text_has_types_that_it_knows_and_no_end() -> None:
    text = prometheus_text([SeriesReading("mrc_run", ("",) * 6, 1), SeriesReading("mrc_host_timeouts", ("h0",), 3)])
    assert "# TYPE mrc_run_info gauge\n" in text
    assert "# TYPE mrc_host_timeouts_total counter\n" in text
    assert "EOF" not in text
    assert text.endswith("\n")


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3", True),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=x", False),
    ],
)
def test_the_format_is_the_one_that_is_preferred(accept: str, is_open: bool) -> None:
    assert preferred(accept) is is_open


@pytest.mark.parametrize(
    ("number", "text"), [(3, "3"), (3.0, "3"), (0.25, "0.25"), (float("inf"), "+Inf"), (float("nan"), "NaN")]
)
def test_numbers(number: float, text: str) -> None:
    assert number_text(number) == text


def test_a_document_becomes_readings() -> None:
    of = series()
    of.start_ns, of.phase = 1_000_000_000, "run"
    of.counters["h0"] = {"bytes_sent": 7, "data_sent": 3, "lost_timeout": 2}
    of.ports["h0"] = [True, False]
    of.evs = {"1/0": {"good": 5, "bad": 1}}
    of.links = [["h0", "port0", 1, 2, 3, 4, 5, 6], ["h0", "eth9", 1, 1, 1, 1, 1, 1]]
    of.hits["p0-t0-0", "up1"] = (1, 2, 3, 4, 5)
    of.fault("cut", "link-down", "p0-t0-0:p0-t1-0", begins=True)
    of.fault("cut", "link-down", "p0-t0-0:p0-t1-0", begins=False)
    of.fault("cut", "link-down", "p0-t0-0:p0-t1-0", begins=True)
    of.stalled["h0"] = {"0>3/allreduce/0": 1_500_000_000}
    found = read(of, 3_000_000_000)
    assert value(found, "mrc_run_clock_seconds") == 2
    assert value(found, "mrc_run_phase", "run") == 1
    assert value(found, "mrc_run_phase", "done") == 0
    assert value(found, "mrc_host_sent_bytes", "h0") == 7
    assert value(found, "mrc_host_lost_packets", "h0", "timeout") == 2
    assert value(found, "mrc_port_up", "h0", "1") == 0
    assert value(found, "mrc_evs", "1", "0", "bad") == 1
    assert value(found, "mrc_link_tx_drops", "h0", "", "0", "port0", "p0-t0-0") == 6
    assert value(found, "mrc_switch_trimmed_packets", "p0-t0-0", "0", "0", "up1") == 2
    assert value(found, "mrc_switch_trimmed_packets", "p0-t0-0", "0", "0", "up0") == 0, "counted, and nothing happened"
    assert value(found, "mrc_fault_active", "cut", "link-down") == 1
    assert value(found, "mrc_fault_cycles", "cut", "link-down") == 2
    assert value(found, "mrc_qp_stalled_seconds", "h0", "0>3/allreduce/0", "h3") == 1.5
    assert value(found, "mrc_series_left_out") == 0
    assert not [one for one in found if one.labels[:1] == ("h0",) and "eth9" in one.labels], "no port of the fabric"


def test_what_only_the_testbed_knows_is_left_out_unless_asked_for() -> None:
    of = series()
    assert not [one for one in read(of) if FAMILIES[one.family].truth]
    assert value(read(of, truth=True), "mrc_switch_lost_packets", "p0-t0-0", "0", "0", "up0") == 0


def test_durations_are_counted_up_to_each_bound() -> None:
    of = series()
    for duration_ns in (40_000_000, 40_000_001, 10**15):
        of.step("train", duration_ns)
    found = [one for one in read(of) if one.family == "mrc_step_duration_seconds"]
    assert [(one.le, one.value) for one in found[:2]] == [("0.04", 1), ("0.08", 2)]
    assert [one.value for one in found if one.le == "+Inf" or one.suffix == "count"] == [3, 3]
    assert sum(one.value for one in found if one.suffix == "sum") == pytest.approx(1e6 + 0.080000001)


def test_too_many_ports_are_summed_up_by_tier_and_plane_and_said() -> None:
    plan = build_plan(clos2_shape(4, 16, 32, 16, 12_500_000, 40_000_000))
    of = RunSeries(plan, INFO, counts_packets=True)
    of.links = [[node, own.name, *[1] * 6] for node, ports in plan.ports.items() for own, _ in ports]
    all_ports = readings(of.document(0), port_labels(plan))
    assert len(all_ports) < MOST_SERIES
    up = sum(1 for node, ports in plan.ports.items() for _ in ports if node.startswith("p1-t0"))
    assert value(all_ports, "mrc_link_rx_bytes", "", "0", "1", "", "") == up
    assert value(all_ports, "mrc_series_left_out") > MOST_SERIES


def test_without_a_verdict_only_the_end_is_known() -> None:
    assert final_document(None) == {"phase": "done"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9460", MetricsAddress("127.0.0.1", 9460)),
        ("0.0.0.0:9460", MetricsAddress("0.0.0.0", 9460)),
        ("[::1]:0", MetricsAddress("::1", 0)),
    ],
)
def test_addresses(text: str, address: MetricsAddress) -> None:
    assert read_metrics_address(text, truth=False) == address


@pytest.mark.parametrize("text", ["", "x", "127.0.0.1", "1:70000", "::1:9460", "host:-1"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="such as"):
        read_metrics_address(text, truth=False)


def test_the_page_has_every_metric() -> None:
    rows = re.findall(r"^\| `(mrc_\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.*) \|$", PAGE.read_text(), re.M)
    assert rows == [
        (
            family.name,
            family.kind.value,
            ", ".join(family.labels),
            family.source + ("" if family.live else " (at the end)"),
            family.help + (" Truth." if family.truth else ""),
        )
        for family in FAMILIES.values()
    ]
