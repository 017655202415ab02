"""No packet goes missing: under load, with trims and cut links, the books agree to the packet. If not, it is said."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.conservation import Ledger, balance
from mrc_testbed.testbed.checks.fault_drops import FaultDrops, drops_of, ledger_of
from mrc_testbed.testbed.checks.figure import evaluate_figure
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.expect import parse_figure
from mrc_testbed.testbed.pages.report.data import drawn
from mrc_testbed.testbed.pages.report.samples import read_samples
from mrc_testbed.testbed.pages.report.story import story
from mrc_testbed.testbed.report.facts import fault_rows
from tests.emu.runs import SMALL, Run

INCAST = """
name: incast
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - incast: {to: h2, from: [h0, h1, h3], for: 3s}
  - write: {from: h2, to: h0, for: 3s}
faults:
  - {at: 1s, link-flap: "p0-t0-0:p0-t1-1", period: 800ms, count: 2, name: cut}
  - {at: 1200ms, link-down: "h1:p1-t0-0", for: 800ms, name: port}
expect:
  - qp_errors == 0
  - bytes_wrong == 0
"""
PLAIN = INCAST.replace("rtt: 20ms", "rtt: 20ms, switch: plain").replace(
    "expect:", "  - {at: 2s, switch-reboot: p1-t1-0, boot: 300ms, name: reboot}\nexpect:"
)


def unexplained(run: Run) -> float:
    (figure,) = [row for row in run.verdict["fidelity"]["figures"] if row["name"] == "unexplained packets"]
    assert figure["limit"] == 0
    return float(figure["observed"])


def received(record: RunRecord, name: str) -> int:
    return sum(counters[name] for counters in record.counters.values())


def test_every_packet_of_an_incast_with_cut_links_is_accounted_for(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=INCAST)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert unexplained(run) == 0
    record = load_record(run.folder)
    assert record.books is not None
    ledger = balance(record.plan, record.books, record.cut_links)
    data, high = ledger.data, ledger.high
    assert ledger.trimmed > 0, "the incast was to overload the last hop"
    assert data.dropped["fault"] > 0, "the cut links were to lose packets"
    assert data.sent == data.arrived + ledger.trimmed + data.all_dropped
    assert high.sent + ledger.trimmed == high.arrived + high.all_dropped
    assert_all_tables_agree(record, run.folder)
    assert received(record, "trimmed_received") <= ledger.trimmed
    whole = sum(received(record, name) for name in ("data_received", "duplicates", "suspect_probes_received"))
    refused = received(record, "refused_psn_window") + received(record, "refused_qp_state")
    assert whole + refused == data.arrived


def assert_all_tables_agree(record: RunRecord, folder: Path) -> None:
    """Summary, table of faults, report and metrics have one number for what the fabric dropped and one for what senders
    took for lost."""
    ledger = ledger_of(record)
    assert isinstance(ledger, Ledger)
    text = " ".join((folder / "summary.txt").read_text().split())
    told = re.search(r"(\d+) data sent: (\d+) arrived.*?, (\d+) trimmed, (\d+) dropped .*? took (\d+) for lost", text)
    assert told is not None, text
    sent, arrived, trimmed, dropped, lost = map(int, told.groups())
    assert sent == arrived + trimmed + dropped
    drops = [drops_of(record, name) for name in ("cut", "port")]
    assert all(isinstance(one, FaultDrops) and not one.shared for one in drops), "they broke different links"
    by_faults = ledger.data.dropped["fault"] + ledger.data.dropped["rule"]
    assert sum(int(row.packets_dropped) for row in fault_rows(record)) == by_faults
    assert dropped == by_faults + ledger.data.dropped["queue"] + ledger.data.dropped["shaper"]
    assert lost == evaluate_figure(record, parse_figure("packets_lost")).value
    happened = story(judge(record), record)["happened"]
    assert f"{dropped} data packets were dropped; {lost} packets were taken for lost" in happened
    groups = drawn(record, read_samples(folder))["losses"]["groups"]
    (by_sender,) = [group for group in groups if group["title"].startswith("Data packets taken for lost")]
    assert sum(row["total"] for row in by_sender["rows"]) == lost


def test_packets_that_vanish_without_a_fault_make_the_run_unbelievable(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=12)
    run.wait_until_step(1)
    (switch,) = run.pids("mininet:p0-t1-1")
    for change in ("add", "del"):
        steal = ["ip", "-6", "rule", change, "pref", "1", "to", "fcbb:bb00::/32", "blackhole"]
        subprocess.run(["nsenter", f"--net=/proc/{switch}/ns/net", *steal], check=True)
        run.wait_until_step(4)
    assert run.finish() == 3
    assert unexplained(run) > 0
    assert run.verdict["verdict"] == "inconclusive"
    assert "unexplained packets" in " ".join(run.output.split())


@pytest.mark.nightly
def test_plain_shapers_account_for_every_frame_of_an_incast_with_cut_links(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=PLAIN)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert unexplained(run) == 0


@pytest.mark.parametrize(
    ("node", "port", "place"),
    [
        ("p0-t0-0", "up1", r"p0-t0-0: \d+ frames lost"),
        ("p0-t1-1", "down0", r"link p0-t0-0:p0-t1-1 from p0-t0-0: \d+ frames lost"),
    ],
    ids=["going-out", "coming-in"],
)
@pytest.mark.nightly
def test_plain_shapers_name_the_place_where_large_packets_vanish(
    tmp_path: Path, node: str, port: str, place: str
) -> None:
    run = Run(tmp_path, steps=12, scenario=SMALL.replace("rtt: 20ms", "rtt: 20ms, switch: plain"))
    run.wait_until_step(1)
    (switch,) = run.pids(f"mininet:{node}")
    for mtu in ("1400", "9000"):
        subprocess.run(["nsenter", f"--net=/proc/{switch}/ns/net", "ip", "link", "set", port, "mtu", mtu], check=True)
        run.wait_until_step(4)
    assert run.finish() == 3
    assert unexplained(run) > 0
    assert re.search(place, " ".join(run.output.split()))
