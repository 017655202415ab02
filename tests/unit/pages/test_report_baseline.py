"""What is shown of a run over RoCE or TCP: what it has, how long it stalled, and how far to trust that."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.pages.report.data import drawn
from mrc_testbed.testbed.pages.report.samples import read_samples
from mrc_testbed.testbed.pages.report.write import report_text
from mrc_testbed.testbed.report import facts
from mrc_testbed.testbed.report.hash_facts import hash_lines
from mrc_testbed.testbed.report.summary import summary_text
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.checks.test_folder import THREE_TIERS, at
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall
from tests.unit.compare.test_transports import DYING, TCP, variant
from tests.unit.recorded import record_run


def tcp(folder: Path) -> RunRecord:
    run = variant(TCP, stall("h0", "h1", 3.55, 8.1))
    run.expect = ["trims == 0", "step_time.p100 <= 1.1 x clean.median"]
    run.events = [event for event in run.events if event["event"] != "ev_state"]
    return load_record(record_run(folder / "tcp", run))


def page_and_summary(record: RunRecord) -> tuple[str, str, Verdict]:
    verdict = judge(record)
    return report_text(record, verdict), summary_text(verdict, record), verdict


def test_a_baseline_shows_stalls_where_mrc_shows_paths(tmp_path: Path) -> None:
    record = tcp(tmp_path)
    page, summary, _ = page_and_summary(record)
    for lacking in ("EVs", "retired", "ASSUMED_BAD</", "Trimmed", "trimmed", "taken for lost", "back after"):
        assert lacking not in summary
    assert "4.55 s, 228 T" in summary
    assert "TCP, cubic: least retransmission timeout 200 ms" in summary
    assert "a QP stalled for 4.55 s (228 T)" in page
    assert "longest<br>stall" in page
    assert 'href="#paths">Stalls' in page
    assert "Paths: " not in page
    assert "retired in it" not in page


def hashed(folder: Path, **found: Any) -> str:
    """Its summary; the page says the same."""
    run = variant(TCP)
    run.environment |= found
    folder.mkdir()
    page, summary, _ = page_and_summary(load_record(record_run(folder / "tcp", run)))
    (line,) = [line for line in summary.splitlines() if line.startswith("hash ")]
    said = line.removeprefix("hash").strip()
    assert said.replace(">", "&gt;") in page
    return said


def row(source: str, sink: str, uplink: int | None) -> dict[str, Any]:
    ports = {"protocol": "tcp", "source_port": 50000, "destination_port": 4791}
    return {"qp": "q", "from": source, "to": sink, "plane": 0, **ports, "uplink": uplink}


def test_a_line_tells_how_flows_fell(tmp_path: Path) -> None:
    inside = row("h0", "h1", None)
    shared = [row("h0", "h2", 1), row("h1", "h3", 1), row("h1", "h3", 1), row("h2", "h0", 1), inside]
    words = hashed(tmp_path / "shared", uplinks=shared)
    assert words == "4 QPs on 2 of 4 uplinks; most on one: 3 (h0>h2, 2 x h1>h3 on p0-t0-0:p0-t1-1)"
    apart = [row("h0", "h2", 1), row("h0", "h2", 0), row("h2", "h0", 1)]
    assert hashed(tmp_path / "apart", uplinks=apart) == "3 QPs on 3 of 4 uplinks; none shares one"
    assert hashed(tmp_path / "inside", uplinks=[inside]) == "no QP leaves its T0"
    assert "repath" in hashed(tmp_path / "unknown", uplinks_unknown="ecmp.repath is on")


def test_over_three_tiers_a_flow_is_on_two_uplinks_and_is_one_flow() -> None:
    """h0 and h1 are in one pod, h2 and h3 in the other; a way is that of its T2, below which are T1s 0 and 2, 1 and 3.
    Each T0 and each T1 has an uplink, or two."""
    scenario = load_scenario_text(f"{THREE_TIERS}  []\n", overrides=["transport=tcp", "fabric.layout=as-written"])
    rows = [row("h0", "h2", 1), row("h1", "h3", 1), row("h0", "h3", 0)]
    record: Any = SimpleNamespace(environment={"uplinks": rows}, scenario=scenario, plan=scenario.plan())
    ((_, said),) = hash_lines(record)
    assert said == "3 QPs on 4 of 16 uplinks; most on one: 2 (h0>h2, h1>h3 on p0-t0-0:p0-t1-1)"


def test_its_chart_has_a_row_for_each_qp_that_stood_still(tmp_path: Path) -> None:
    record = tcp(tmp_path)
    found = drawn(record, read_samples(record.folder))["timelines"]
    (group,) = [group for group in found["groups"] if group["title"] == "QPs that stalled"]
    assert (found["all"], found["stalls"]) == (None, 1)
    (row,) = group["rows"]
    assert (row["label"], row["t"], row["s"]) == ("h0\u2192h1", [3.55, 8.1], "WP")
    kinds = drawn(record, read_samples(record.folder))["losses"]["none"]
    assert not any("rimmed" in kind for kind in kinds)


def test_a_check_that_does_not_hold_is_missed_and_one_it_lacks_is_n_a(tmp_path: Path) -> None:
    page, summary, verdict = page_and_summary(tcp(tmp_path))
    assert "n/a     trims == 0" in summary
    assert "missed  step_time.p100" in summary
    assert "FAIL" not in summary
    assert verdict.status.upper() in summary
    assert '<span class="badge na">' in page
    assert "missed</span>" in page
    assert 'header class="banner measured"' in page


def test_how_far_to_trust_stands_where_the_numbers_are(tmp_path: Path) -> None:
    page, summary, _ = page_and_summary(tcp(tmp_path))
    assert "1538 times the 13 us of a data centre" in summary
    assert "K = 1538" in page
    ours = load_record(record_run(tmp_path / "mrc", variant("")))
    page, summary, _ = page_and_summary(ours)
    assert "How far to trust" not in page + summary


def test_a_dead_job_says_when_and_by_which_qp(tmp_path: Path) -> None:
    record = load_record(record_run(tmp_path / "roce", break_off(variant(DYING, stalled={"a": at(3.6)}))))
    page, summary, _ = page_and_summary(record)
    assert summary.splitlines()[-1] == "network: job died at 4.4 s: QP h0->h2: retries"
    assert "network: job died at 4.4 s: QP " in page
    assert "RoCE, lossy" in page
    assert facts.endpoint_line(record).startswith("RoCE, lossy: go-back-n, timeout 16 (268 ms), 7 retries")
    assert [row.stall for row in facts.fault_rows(record)] == ["800 ms, 40 T"]
