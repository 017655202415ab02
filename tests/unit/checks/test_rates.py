"""Rates of flows: bytes as they are placed, and nothing where too little tells. Whole runs are in virtual time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.report.batch import batch_as_dict
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.junit import junit_text
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.rundir.tables import FLOWS
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.workloads.fairness import line_rate
from tests.unit.checks.test_flows import LINE, SCENARIO, FlowFolder

ONE_FLOW = """\
name: few-messages
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 40ms}
"""


def ran(out: Path, text: str) -> RunRecord:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(text), out, False, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    return load_record(outcome.folder)


@pytest.mark.parametrize(
    "transport", ["transport: mrc", "transport: roce", "transport: roce\nroce: {recovery: go-back-n}"]
)
def test_one_long_message_has_the_rate_at_which_its_packets_came(tmp_path: Path, transport: str) -> None:
    """3 MB at 3 MB/s: counted when it is whole, it is nothing for a second, and then more than a port carries."""
    workload = "workload: [{write: {from: h0, to: h2, bytes: 3MB, message: 3MB}}]\n"
    record = ran(tmp_path, f"{ONE_FLOW}{transport}\n{workload}")
    rows = list(record.received)
    (messages,) = {row.messages for row in rows if row.messages}
    assert messages == 1
    assert sum(row.bytes for row in rows) == 3_000_000, "each byte once"
    most = line_rate(record.scenario.shape()) * 0.1 + 2 * 4096
    assert max(row.bytes for row in rows) <= most
    found = ask(record, "flow_goodput.min", "line").value
    assert found is not None
    assert 0.95 <= found <= 1


def test_with_one_of_two_ports_dead_goodput_is_half_of_the_line(tmp_path: Path) -> None:
    """The window holds 1.2 s with one port and the 0.4 s after it with both: 0.63 of the line at most."""
    faults = 'faults: [{at: 1500ms, link-down: "h0:p0-t0-0", for: 1200ms, name: cut}]\n'
    record = ran(tmp_path, f"{ONE_FLOW}workload: [{{write: {{from: h0, to: h2, for: 4s, message: 2MB}}}}]\n{faults}")
    for figure in ("goodput during cut", "flow_goodput.max during cut"):
        found = ask(record, figure, "line").value
        assert found is not None
        assert 0.5 <= found <= 0.68
    back = ask(record, "goodput_back.p100 during cut", "s").value
    assert back is not None
    assert 1.2 <= back <= 1.6


def test_a_fault_that_touches_nothing_is_no_fall_of_a_flow_of_few_packets(tmp_path: Path) -> None:
    """One message of 4 KiB a round trip: two or three of them in a stretch are no fall to two thirds."""
    faults = 'faults: [{at: 2s, link-down: "h1:p0-t0-0", for: 300ms, name: cut}]\n'
    flow = "workload: [{write: {from: h0, to: h2, for: 4s, message: 4KiB, depth: 1}}]\n"
    asked = ask(ran(tmp_path, f"{ONE_FLOW}{flow}{faults}"), "goodput_back.p100 during cut")
    assert asked.value is None
    assert "too few to tell a fall" in asked.why


def test_uneven_stretches_without_a_fault_tell_no_fall(tmp_path: Path) -> None:
    folder = FlowFolder()
    for number, row in enumerate(folder.rows):
        if row[1] == "h3->h1" and number % 4 == 0:
            row[5] = row[5] * 3 // 4
    asked = ask(load_record(folder.write(tmp_path)), "goodput_back.p100 during cut")
    assert asked.value is None
    assert "are below 95 % of their median too" in asked.why


def test_a_window_with_too_few_packets_tells_no_rate(tmp_path: Path) -> None:
    """At 250 kbit/s a stretch of 100 ms is a packet and a half of h0's."""
    folder = FlowFolder(scenario=SCENARIO.replace("25mbit, rtt: 20ms", "250kbit, rtt: 20ms"))
    record = load_record(folder.write(tmp_path))
    asked = ask(record, "goodput during cut")
    assert asked.value is None
    assert "packets in the time during cut: too few to tell a rate" in asked.why


def test_more_than_a_port_carries_is_no_rate(tmp_path: Path) -> None:
    folder = FlowFolder(rates={"h0->h2": 0.5, "h1->h2": 0.5, "h3->h1": 1.9})
    folder.expect = ["flow_goodput.max >= 0.9 line", "goodput >= 0.9 line", "fair_share.max >= 1"]
    verdict = folder.judge(tmp_path)
    assert {check.status for check in verdict.checks[:3]} == {Status.INCONCLUSIVE}
    assert "h3->h1 would have delivered" in verdict.checks[0].why


def test_a_packet_more_than_the_line_is_the_line(tmp_path: Path) -> None:
    folder = FlowFolder(rates={"h0->h2": 0.5, "h1->h2": 0.5, "h3->h1": 1.001})
    folder.expect = ["flow_goodput.max <= 1 line clean"]
    assert folder.judge(tmp_path).checks[0].status is Status.PASS


def test_a_run_that_counted_whole_messages_is_judged_by_messages(tmp_path: Path) -> None:
    """Five messages of 1 MB in a window of 0.9 s are no rate, whatever their packets were."""
    folder = FlowFolder(scenario=SCENARIO.replace("for: 6s", "for: 6s, message: 1MB"))
    del folder.environment["flow_bytes"]
    asked = ask(load_record(folder.write(tmp_path)), "goodput during cut")
    assert asked.value is None
    assert "messages in the time during cut" in asked.why
    assert "bytes" in FLOWS.names
    assert ask(load_record(FlowFolder().write(tmp_path)), "goodput during cut").value == pytest.approx(
        2 * LINE * (4 + 2.5) / 9, rel=1e-3
    )


@pytest.mark.parametrize("figure", ["fair_share.min", "balance", "flow_goodput.max"])
def test_shares_in_planes_that_hold_few_packets_are_not_judged(tmp_path: Path, figure: str) -> None:
    folder = FlowFolder(scenario=SCENARIO.replace("rtt: 20ms", "rtt: 7ms"))
    asked = ask(load_record(folder.write(tmp_path)), figure)
    assert asked.value is None
    assert asked.why.startswith("a plane holds 5.2 packets in one rtt, under 5.5")


FEW_IN_FLIGHT = """\
name: few-in-flight
world: virtual
scale: 100
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 4mbit, rtt: 40ms}
workload: [{write: {pairs: [h0->h2, h1->h3], for: 2s}}]
expect: [flow_goodput.min >= 0.95 line, fair_share.min >= 0.1, "goodput >= 1 mbit"]
"""


def test_a_run_with_few_packets_in_flight_says_everywhere_what_is_worthless(tmp_path: Path) -> None:
    """Planes of 4.7 packets, at a scale too."""
    scenario = load_scenario_text(FEW_IN_FLIGHT)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, tmp_path, True, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    assert outcome.verdict is not None
    assert [check.status for check in outcome.verdict.checks[:3]] == [*[Status.INCONCLUSIVE] * 2, Status.PASS]
    cases = [Case(Path("few.yaml"), scenario, 1, 1, (outcome,))]
    summary = " ".join((outcome.folder / "summary.txt").read_text().split())
    page = (outcome.folder / "report.html").read_text()
    for told in (summary, page, junit_text(cases), json.dumps(batch_as_dict(cases))):
        assert "fair_share, balance and flow_goodput are worthless and not judged" in told
    assert "clean fair share" not in summary


@pytest.mark.parametrize(
    ("fabric", "figure", "why"),
    [
        ("rtt: 10ms", "fair_share.min", "a plane holds 7.4 packets in one rtt, under 11, where flows compete"),
        ("rtt: 10ms", "balance", "a plane holds 7.4 packets in one rtt, under 11, where flows compete"),
        ("rtt: 10ms", "flow_goodput.max", "a plane holds 7.4 packets in one rtt, under 11, where flows compete"),
        ("rtt: 10ms", "fair_share.min of victims", ""),
        ("rtt: 10ms", "goodput", ""),
        (
            "rtt: 20ms, t1_speed: 50%",
            "fair_share.min of victims",
            "a plane holds 7.4 packets in one rtt on its slowest",
        ),
        ("rtt: 16ms", "fair_share.min", ""),
    ],
)
def test_flows_that_compete_or_cross_slow_links_need_more_packets(
    tmp_path: Path, fabric: str, figure: str, why: str
) -> None:
    asked = ask(load_record(FlowFolder(scenario=SCENARIO.replace("rtt: 20ms", fabric)).write(tmp_path)), figure)
    assert asked.why.startswith(why)
    assert (asked.value is None) == bool(why), asked.why


def test_flows_that_switches_hash_are_never_alone(tmp_path: Path) -> None:
    scenario = SCENARIO.replace("rtt: 20ms", "rtt: 10ms, layout: as-written")
    folder = FlowFolder(scenario=f"transport: roce\n{scenario}").write(tmp_path)
    assert "under 11" in ask(load_record(folder), "fair_share.min of victims").why


COMPETING = """\
name: competing
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload: [{incast: {to: h2, from: [h0, h1], for: 2s}}]
expect: [fair_share.min >= 0.1, "goodput >= 1 mbit"]
"""


def test_a_run_whose_shares_cannot_be_judged_is_inconclusive_and_says_why(tmp_path: Path) -> None:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(COMPETING), tmp_path, True, PatientConsole(file=nowhere))
    assert outcome.verdict is not None
    assert outcome.verdict.status is Status.INCONCLUSIVE
    assert outcome.folder is not None
    summary = " ".join((outcome.folder / "summary.txt").read_text().split())
    for told in (outcome.verdict.checks[0].why, summary):
        assert "a plane holds 7.4 packets in one rtt, under 11, where flows compete" in told
    assert outcome.verdict.checks[1].status is Status.PASS, "goodput of all together is known"


SMALL_BDP = """\
name: small-bdp
world: virtual
fabric: {planes: 2, t0_groups: 4, t1: 4, hosts_per_t0: 4, port_rate: 10mbit, rtt: 20ms}
workload:
  - write:
      pairs: [h0->h7, h1->h12, h2->h1, h3->h6, h4->h11, h5->h0, h6->h5, h7->h10, h8->h15, h9->h4, h10->h9, h11->h14,
        h12->h3, h13->h8, h14->h13, h15->h2]
      for: 2s
expect: [fair_share.min >= 0.95, fair_share.max <= 1, evs_retired == 0]
"""


def test_a_permutation_has_its_shares_where_a_plane_holds_six_packets(tmp_path: Path) -> None:
    """They were 0.63 to 0.75 while windows and target delay were made for the 5.9 packets of T."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(SMALL_BDP), tmp_path, True, PatientConsole(file=nowhere))
    assert outcome.verdict is not None
    assert outcome.verdict.status is Status.PASS, outcome.verdict.reason
    assert outcome.folder is not None
    summary = " ".join((outcome.folder / "summary.txt").read_text().split())
    assert "a plane holds 5.9 packets in one rtt, under 11" in summary
