"""Stalls, dead jobs, checks that do not apply, and runs that only measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.figure import Observed, ask
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.summary import summary_text
from tests.unit.checks.test_folder import HOSTS, SCENARIO, THREE_TIERS, RunFolder, at
from tests.unit.checks.test_judge import break_off


def stall(host: str, peer: str, begin: float, end: float, qp: str = "a") -> dict[str, Any]:
    times = {"begin_ns": at(begin), "end_ns": at(end)}
    return {"event": "stall", "t_ns": at(end), "host": host, "qp": qp, "peer": peer, **times}


def watched(*stalls: dict[str, Any], stalled: dict[str, int] | None = None) -> RunFolder:
    """Each host sends on QP `a` to the next one, on QP `b` to nobody; `stalled`: of the last snapshot of h0."""
    folder = RunFolder()
    assert folder.counters is not None
    for number, host in enumerate(HOSTS):
        peer = HOSTS[(number + 1) % len(HOSTS)]
        idle = {"peer": HOSTS[number - 1], "sent": 0, "lost": 0}
        folder.counters["hosts"][host]["qps"] = {"a": {"peer": peer, "sent": 9, "lost": 0}, "b": idle}
    for event in folder.events:
        if event["event"] == "snapshot":
            event["stalled"] = {}
    last = next(event for event in reversed(folder.events) if event.get("host") == "h0" and "counters" in event)
    last["stalled"] = stalled or {}
    folder.events += stalls
    return folder


def asked(folder: RunFolder, tmp_path: Path, text: str) -> Observed:
    return ask(load_record(folder.write(tmp_path)), text)


TWO = (stall("h0", "h1", 3.4, 5.4), stall("h0", "h1", 6, 6.5), stall("h2", "h3", 1, 1.2))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("stall.p100", 2.0),
        ("stall.p50", 0.1),  # of 2, 0, 0.2 and 0 s
        ("stall.p100 of h2", 0.2),
        ("stall.p100 of h0->h1", 2.0),
        ("stall.p100 of h1", 0.0),
        ("stall.p100 during cut", 2.0),  # whole, although it began before the cut and outlasted it
        ("stall.p100 clean", 0.5),
        ("stall.p100 from 5s to 6.2s", 0.4),
        ("stall.p100 from 7s to 8s", 0.0),
    ],
)
def test_the_longest_stall_of_each_qp_that_sends(tmp_path: Path, text: str, seconds: float) -> None:
    assert asked(watched(*TWO), tmp_path, text).value == pytest.approx(seconds)


def test_a_stall_that_never_ended_lasts_until_the_job_does(tmp_path: Path) -> None:
    folder = watched(stalled={"a": at(3.6)})
    assert asked(folder, tmp_path, "stall.p100").value == pytest.approx(8.3 - 3.6)
    assert asked(folder, tmp_path, "stall.p100 of h0->h1").value == pytest.approx(8.3 - 3.6)
    died = break_off(watched(stalled={"a": at(3.6)}))
    assert asked(died, tmp_path, "stall.p100").value == pytest.approx(4.4 - 3.6)


def test_a_stall_in_a_snapshot_that_ended_later_counts_once(tmp_path: Path) -> None:
    folder = watched(stall("h0", "h1", 6.9, 7.4), stalled={"a": at(6.9)})
    assert asked(folder, tmp_path, "stall.p100").value == pytest.approx(0.5)


def test_without_a_watch_nothing_is_known_and_with_one_no_stall_is_none(tmp_path: Path) -> None:
    assert "did not watch" in asked(RunFolder(), tmp_path, "stall.p100").why
    folder = watched()
    folder.expect = ["stall.p100 == 0 ms"]
    check = folder.judge(tmp_path).checks[0]
    assert (check.status, check.observed, check.observed_as) == (Status.PASS, 0, "none")


def test_waste_is_what_was_sent_and_not_delivered(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    for host in HOSTS:
        folder.counters["hosts"][host]["counters"] |= {"bytes_sent": 1500, "bytes_delivered": 1000}
    assert asked(folder, tmp_path, "wasted").value == pytest.approx(0.5)
    folder.counters["hosts"]["h1"]["counters"]["bytes_delivered"] = 4000 - 3000 + 2000
    assert asked(folder, tmp_path, "wasted").value == pytest.approx(0.0)
    assert "did not count bytes_sent" in asked(RunFolder(), tmp_path, "wasted").why


def samples(loads: dict[tuple[str, str], list[float]]) -> str:
    """Ports that send these Mb/s, in turn for a second each."""
    lines = ["t_ns,node,port,rx_bytes,rx_packets,rx_drops,tx_bytes,tx_packets,tx_drops"]
    for second in range(len(next(iter(loads.values()))) + 1):
        for (node, port), rates in loads.items():
            sent = round(sum(rates[:second]) * 1e6 / 8)
            lines.append(f"{at(second)},{node},{port},0,0,0,{sent},0,0")
    return "\n".join(lines) + "\n"


LOADS: dict[tuple[str, str], list[float]] = {
    ("p0-t0-0", "up0"): [25, 25, 25, 0, 0, 25, 25, 25],
    ("p0-t0-0", "up1"): [5, 5, 5, 20, 20, 5, 5, 5],
    ("p0-t0-1", "up0"): [1] * 8,  # acknowledgements
    ("p0-t0-1", "up1"): [0] * 8,
    ("h0", "port0"): [12.5] * 8,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("link_load.max", 150 / 8 / 25),
        ("link_load.min", 0.0),
        ("link_load.max from 0s to 2s", 1.0),
        ("uplink_share.max from 0s to 3s", 25 / 15),
        ("uplink_share.min from 0s to 3s", 5 / 15),
        ("uplink_share.max from 3s to 5s", 2.0),
        ("link_load.max during cut", 20 / 25),  # seconds 3 to 5: what overlaps a fault counts
        ("link_load.max clean", 25 / 25),
    ],
)
def test_loads_of_links(tmp_path: Path, text: str, value: float) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / "samples.csv").write_text(samples(LOADS) + f"{at(9)},h0,port0,0,0,0,7")  # the last one is torn
    assert ask(load_record(folder), text).value == pytest.approx(value, rel=1e-3)


UNEQUAL = THREE_TIERS.replace("hosts_per_t0: 2}", "hosts_per_t0: 2, t1_speed: [100 %, 50 %]}")
TIERS: dict[tuple[str, str], list[float]] = {
    ("p0-t0-0", "up0"): [20] * 8,  # of 25 Mb/s
    ("p0-t0-0", "up1"): [5] * 8,  # of 12.5
    ("p0-t1-0", "up0"): [20] * 8,  # its only one
    ("p0-t1-1", "down0"): [5] * 8,
    ("p0-t2-0", "down1"): [20] * 8,
    ("h0", "port0"): [25] * 8,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("link_load.max", 1.0),
        ("link_load.min", 5 / 25),  # the link of T1-1 to T0-0 has 12.5 Mb/s, and T2-0's has 25
        ("uplink_share.max", (20 / 25) / (25 / 37.5)),
        ("uplink_share.min", (5 / 12.5) / (25 / 37.5)),
    ],
)
def test_loads_are_told_over_the_rate_of_each_link_and_uplinks_of_every_tier(
    tmp_path: Path, text: str, value: float
) -> None:
    folder = RunFolder(scenario=UNEQUAL).write(tmp_path)
    loads = TIERS | {("p0-t1-1", "down0"): [2.5] * 8}
    (folder / "samples.csv").write_text(samples(loads))
    assert ask(load_record(folder), text).value == pytest.approx(value, rel=1e-3)


def test_a_few_packets_tell_nothing_of_how_uplinks_are_shared(tmp_path: Path) -> None:
    """Six packets on one uplink and none on the other in two seconds."""
    folder = RunFolder().write(tmp_path)
    few = {("p0-t0-0", "up0"): [0.1] * 8, ("p0-t0-0", "up1"): [0.0] * 8}
    (folder / "samples.csv").write_text(samples(few))
    asked = ask(load_record(folder), "uplink_share.max from 0s to 2s")
    assert asked.value is None
    assert "packets each" in asked.why


def test_without_readings_no_load_is_known(tmp_path: Path) -> None:
    assert "less than twice" in asked(RunFolder(), tmp_path, "link_load.max").why


@pytest.mark.parametrize(
    ("expect", "status"),
    [
        (["job_died == 1"], Status.PASS),
        (["died_at <= 5s", "died_at >= 4s"], Status.PASS),
        (["died_at <= 4s"], Status.FAIL),
        (["job_died == 0"], Status.FAIL),
        (["warning: job_died == 1"], Status.FAIL),  # a warning does not say how the job should end
    ],
)
def test_a_death_that_was_asked_for_passes(tmp_path: Path, expect: list[str], status: Status) -> None:
    verdict = break_off(RunFolder(expect=expect)).judge(tmp_path)
    assert verdict.status is status, verdict.reason
    assert verdict.death == "job died at 4.4 s: QP h0->h2: retries"


def test_a_job_that_lives_did_not_die(tmp_path: Path) -> None:
    assert asked(RunFolder(), tmp_path, "job_died").value == 0
    assert asked(RunFolder(), tmp_path, "died_at").why == "the job did not die"
    verdict = RunFolder(expect=["job_died == 1"]).judge(tmp_path)
    assert (verdict.status, verdict.death) == (Status.FAIL, "")


def test_faults_after_the_death_are_not_missed(tmp_path: Path) -> None:
    folder = break_off(RunFolder(expect=["job_died == 1"]))
    folder.events[-1]["t_ns"] = at(3.2)
    folder.history = [line for line in folder.history if "fault" not in line]
    verdict = folder.judge(tmp_path)
    assert verdict.status is Status.PASS, verdict.reason
    folder.events[-1]["t_ns"] = at(3.6)
    assert folder.judge(tmp_path).status is Status.INCONCLUSIVE


def unjudged(*expect: str) -> RunFolder:
    """Beside runs of RoCE, which are what counts."""
    return RunFolder(expect=list(expect), scenario=f"judge: [roce]\n{SCENARIO}")


def test_a_run_that_is_not_judged_measures_or_dies(tmp_path: Path) -> None:
    verdict = unjudged("steps_done == 9", "recovery.p99 <= 1ms").judge(tmp_path)
    assert (verdict.status, verdict.exit_code, verdict.reason) == (Status.MEASURED, ExitCode.PASS, "")
    assert [check.status for check in verdict.checks[:2]] == [Status.FAIL, Status.FAIL]
    died = break_off(unjudged()).judge(tmp_path)
    assert (died.status, died.exit_code) == (Status.DIED, ExitCode.PASS)
    assert died.reason == "network: job died at 4.4 s: QP h0->h2: retries"
    assert Verdict.from_dict(json.loads(json.dumps(died.as_dict()))) == died


def test_a_measurement_needs_a_machine_its_faults_and_right_bytes(tmp_path: Path) -> None:
    folder = break_off(unjudged())
    folder.fidelity = None
    assert folder.judge(tmp_path).status is Status.INCONCLUSIVE
    folder = unjudged()
    folder.history = [line for line in folder.history if "fault" not in line]
    assert folder.judge(tmp_path).status is Status.INCONCLUSIVE
    folder = unjudged()
    folder.completions[3][5] = 7
    assert folder.judge(tmp_path).status is Status.FAIL


def over(transport: str, *expect: str) -> RunFolder:
    return RunFolder(expect=list(expect), scenario=f"transport: {transport}\n{SCENARIO}")


@pytest.mark.parametrize(
    ("transport", "text", "status"),
    [
        ("tcp", "recovery.p100 <= 1 ms", Status.NOT_APPLICABLE),
        ("tcp", "timeouts of each host == 1", Status.NOT_APPLICABLE),
        ("tcp", "warning: trims == 0", Status.NOT_APPLICABLE),
        ("roce", "data_on_bad_ev == 0", Status.NOT_APPLICABLE),
        ("roce", "retransmissions == 60", Status.PASS),
        ("tcp", "queue_drops == 4", Status.PASS),
        ("mrc", "recovery.p100 <= 1 ms", Status.FAIL),
    ],
)
def test_a_check_of_a_metric_that_the_transport_lacks_does_not_apply(
    tmp_path: Path, transport: str, text: str, status: Status
) -> None:
    check = over(transport, text).judge(tmp_path).checks[0]
    assert check.status is status, check.why
    assert status is not Status.NOT_APPLICABLE or check.why.startswith(f"{transport} has no ")


def test_what_does_not_apply_decides_nothing(tmp_path: Path) -> None:
    folder = over("tcp", "trims == 0", "warning: trims == 0")
    verdict = folder.judge(tmp_path)
    assert (verdict.status, verdict.warnings) == (Status.PASS, ())
    assert Verdict.from_dict(json.loads(json.dumps(verdict.as_dict()))) == verdict
    assert "n/a   trims == 0" in summary_text(verdict, load_record(tmp_path))
    folder.fidelity = {}
    late = folder.judge(tmp_path)
    assert late.status is Status.INCONCLUSIVE
    assert late.checks[0].status is Status.NOT_APPLICABLE
