"""Flows from the command line, over a real fabric: they end, every byte is right, and what is told of them fits."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path

import pytest

from tests.emu.runs import DAEMON, Run

FABRIC = "fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}\n"
ALWAYS = """
expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - data_on_bad_ev == 0
"""
TWO = f"""
name: two
{FABRIC}
workload:
  - write: {{from: h0, to: h2, for: 3s, qps: 2}}
  - write: {{from: h1, to: h3, bytes: 2MiB, start: 500ms, name: later}}
faults:
  - {{at: 1500ms, link-down: "p0-t0-0:p0-t1-1", for: 500ms, name: cut}}
{ALWAYS}  - evs_retired > 0
  - goodput > 0 mbit during cut
  - message_time.p50 of later > 1 rtt
"""
PERMUTATION = f"name: permutation\n{FABRIC}workload:\n  - permutation: {{for: 2s, message: 10000B}}\n{ALWAYS}"
INCAST = f"""
name: incast
{FABRIC}
workload:
  - incast: {{to: h2, from: [h0, h1, h3], for: 2s}}
  - write: {{from: h2, to: h0, for: 2s}}
{ALWAYS}
"""
FAST = """
name: fast
fabric: {planes: 1, t0_groups: 2, t1: 1, hosts_per_t0: 1, port_rate: 100mbit, rtt: 20ms}
workload:
  - write: {from: h0, to: h1, for: 3s}
expect:
  - fair_share.min >= 0.9
"""
COMPETING = f"""
name: competing
{FABRIC}
workload:
  - incast: {{to: h2, from: [h0, h1], for: 1s}}
expect:
  - fair_share.min >= 0.1
"""
LONG = f"name: long\n{FABRIC}workload:\n  - write: {{from: h0, to: h2, for: 60s, bidirectional: true}}\n"


def rows(run: Run, name: str) -> list[dict[str, str]]:
    with (run.folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_two_flows_with_a_link_down_pass_and_leave_their_rows(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=TWO)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    received, messages = rows(run, "flows.csv"), rows(run, "messages.csv")
    assert {(row["flow"], row["qp"]) for row in received if row["last"] == "1"} == {
        *(("h0->h2", "0"), ("h0->h2", "1"), ("h1->h3", "0"))
    }
    assert sum(int(row["bytes"]) for row in received if row["flow"] == "h1->h3") == 2 << 20
    for flow in ("h0->h2", "h1->h3"):
        delivered = sum(int(row["messages"]) for row in received if row["flow"] == flow)
        assert delivered == sum(row["flow"] == flow for row in messages)
    grains = {int(row["end_ns"]) - int(row["begin_ns"]) for row in received if row["last"] == "0"}
    assert grains == {100_000_000}
    later = min(int(row["begin_ns"]) for row in received if row["flow"] == "h1->h3" and row["bytes"] != "0")
    assert later - min(int(row["begin_ns"]) for row in received) >= 400_000_000
    assert "2 flows, " in run.output
    assert "a plane holds 7.4 packets" in run.output
    assert "Traceback" not in run.output + run.errors


@pytest.mark.nightly
def test_shares_of_competing_flows_are_not_judged_where_a_plane_holds_seven_packets(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=COMPETING)
    run.finish()
    (check, *_) = json.loads((run.folder / "verdict.json").read_text(encoding="utf-8"))["checks"]
    assert check["status"] == "inconclusive"
    assert check["why"].startswith("a plane holds 7.4 packets in one rtt, under 11, where flows compete")


@pytest.mark.nightly
def test_a_permutation_and_an_incast_come_to_their_end_with_every_byte_right(tmp_path: Path) -> None:
    for name, scenario in (("permutation", PERMUTATION), ("incast", INCAST)):
        run = Run(tmp_path / name, scenario=scenario)
        run.finish()
        run.assert_passed_or_machine_was_busy()
        assert len({row["flow"] for row in rows(run, "flows.csv")}) == 4


@pytest.mark.nightly
def test_a_killed_daemon_ends_the_flows_with_its_host_named(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=LONG)
    run.wait_until_flowing("h0->h2")
    os.kill(run.pids(DAEMON)[0], signal.SIGKILL)
    assert run.finish() == 3
    assert run.verdict["verdict"] == "inconclusive"
    assert "the endpoint daemon was killed by SIGKILL" in run.history()[-1]["error"]
    assert run.history()[-1]["error"].startswith(("h0: ", "h2: "))


@pytest.mark.nightly
def test_a_host_cut_off_for_good_is_told_with_its_flow(tmp_path: Path) -> None:
    cut = "faults:\n  - {at: 500ms, link-down: [h0:p0-t0-0, h0:p1-t0-0], for: 60s}\nexpect: [qp_errors == 0]\n"
    run = Run(tmp_path, scenario=LONG + cut, options=("--set", "workload.0.write.bidirectional=false"))
    assert run.finish() in (1, 3)
    held = {check["name"]: check["unbelieved"] or check["status"] for check in run.verdict["checks"]}
    assert held["qp_errors == 0"] == held["every flow moved data and ended"] == "fail"
    assert "QP h0->h2/0 to h2 failed: all ports down" in " ".join(run.output.split())


@pytest.mark.nightly
def test_an_interrupted_run_of_flows_keeps_its_results(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=LONG)
    run.wait_until_flowing("h2->h0")
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.finish() == 130
    assert run.verdict["verdict"] == "inconclusive"
    assert rows(run, "messages.csv")


@pytest.mark.timed
@pytest.mark.nightly
def test_one_flow_fills_a_plane_whose_packets_are_shorter_than_a_turn(tmp_path: Path) -> None:
    """59 packets a round trip; with turns of T/10 and four packets in advance a port had 0.64 of its rate."""
    run = Run(tmp_path, scenario=FAST)
    run.finish()
    run.assert_passed_or_machine_was_busy()
