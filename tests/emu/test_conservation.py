"""No packet goes missing: under load, with trims and cut links, the books agree to the packet. If not, it is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.checks.conservation import balance
from testbed.checks.record import RunRecord, load_record
from tests.emu.runs import Run

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
    assert ledger.trimmed > 0, "the incast was to overload the last hop"
    assert ledger.dropped["fault"] > 0, "the cut links were to lose packets"
    excused_at_nics = sum(gap.missing for gap in ledger.gaps if gap.what == "packets")
    dropped = sum(ledger.dropped.values())
    assert dropped - excused_at_nics <= ledger.data_sent - ledger.delivered - ledger.trimmed <= dropped
    assert received(record, "trimmed_received") <= ledger.trimmed
    whole = sum(received(record, name) for name in ("data_received", "duplicates", "suspect_probes_received"))
    refused = received(record, "refused_psn_window") + received(record, "refused_qp_state")
    assert whole + refused == ledger.delivered


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
