"""What is not known is no pass: figures of a folder that tells too little for what is asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.builtin import ENDED, FINISHED, INTACT
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from tests.unit.checks.test_flows import FlowFolder
from tests.unit.checks.test_folder import HOSTS, LINK, RunFolder, at, fault, snapshot

SECOND_FAULT = f'  - {{at: 3700ms, link-down: "{LINK.replace("t1-1", "t1-0")}", for: 800ms, name: next}}\nexpect:\n'


def judged(folder: RunFolder, path: Path, line: str) -> CheckResult:
    folder.expect = [line]
    (check,) = [check for check in judge(load_record(folder.write(path))).checks if check.name == line]
    return check


def died(folder: RunFolder, after_step: int, seconds: float) -> RunFolder:
    """The job stalled in the step after that one until a QP gave up."""
    folder.completions = [row for row in folder.completions if row[1] <= after_step]
    folder.history = [line for line in folder.history if (line["op"], line["type"]) != ("workload", "ok")]
    folder.events.append({"event": "qp_error", "t_ns": at(seconds), "host": "h0", "peer": "h2", "reason": "retries"})
    return folder


def test_a_step_that_never_ended_is_a_fall(tmp_path: Path) -> None:
    folder = died(RunFolder(durations=[1.0] * 8), after_step=3, seconds=8.0)
    check = judged(folder, tmp_path, "goodput_back.p100 <= 1s during cut")
    assert (check.status, check.observed) == (Status.FAIL, pytest.approx(8.0 - 3.501))
    of_host = judged(folder, tmp_path, "goodput_back.p100 of h1 <= 1s during cut")
    assert of_host.status is Status.FAIL


def test_a_job_that_dies_within_a_usual_step_fell_nowhere(tmp_path: Path) -> None:
    folder = died(RunFolder(durations=[1.0] * 8), after_step=3, seconds=4.9)
    check = judged(folder, tmp_path, "goodput_back.p100 <= 1s during cut")
    assert (check.status, check.observed_as) == (Status.PASS, "never fell")


class Joined(FlowFolder):
    """A fourth flow that sends in the time of the fault only: what four flows send in clean time nobody knows."""

    def __post_init__(self) -> None:
        self.scenario = self.scenario.replace(
            "faults:", "  - write: {from: h1, to: h0, start: 2900ms, for: 800ms}\nfaults:"
        )
        super().__post_init__()
        self.rows += [["h0", "h1->h0", 0, at(2.9 + n / 10), at(3 + n / 10), 100_000, 1, 0, 0] for n in range(8)]


def test_goodput_of_flows_that_never_were_alone_with_each_other_is_not_known_to_have_stayed(tmp_path: Path) -> None:
    check = judged(Joined(), tmp_path, "goodput_back.p100 <= 100ms during cut")
    assert check.status is Status.INCONCLUSIVE
    assert check.why.startswith("goodput is not known for ")


def test_faults_that_follow_each_other_at_once_are_followed_together(tmp_path: Path) -> None:
    """3 ms after the first one nothing of it could be seen; what is low after the second one may be due to either."""
    folder = RunFolder(durations=[1.0, 1.0, 1.0, 1.0, 1.5, 1.5, 1.0, 1.0])
    assert folder.scenario.endswith("expect:\n")
    folder.scenario = folder.scenario.removesuffix("expect:\n") + SECOND_FAULT
    second = {"fault": "next", "links": [LINK.replace("t1-1", "t1-0")], "target": LINK.replace("t1-1", "t1-0")}
    folder.history[4:4] = [fault("inject", "invoke", 3.503, **second), fault("inject", "ok", 3.504, **second)]
    folder.history[8:8] = [fault("heal", "ok", 4.5025, **second)]
    check = judged(folder, tmp_path, "goodput_back.p100 <= 1s during cut")
    assert (check.status, check.observed) == (Status.FAIL, pytest.approx(7.0 - 3.501))


def test_a_fault_right_before_the_end_says_nothing(tmp_path: Path) -> None:
    folder = RunFolder(durations=[0.45] * 8)
    folder.history[6]["t_ns"] = at(3.6)
    check = judged(folder, tmp_path, "goodput_back.p100 <= 1s during cut")
    assert (check.status, check.why) == (
        Status.INCONCLUSIVE,
        "the workload ended before anything could be seen of it",
    )


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("goodput_back.p50 <= 1 s during faults", Status.PASS),
        ("goodput_back.p100 <= 1 s during faults", Status.FAIL),
        ("goodput_back.p100 <= 9 s during faults", Status.INCONCLUSIVE),
        ("goodput_back.p50 >= 9 s during faults", Status.FAIL),
    ],
)
def test_a_percentile_is_known_although_one_fall_did_not_end(tmp_path: Path, line: str, status: Status) -> None:
    folder = RunFolder(durations=[1.0] * 9 + [2.0, 2.0])
    folder.scenario = folder.scenario.replace("steps: 8", "steps: 11")
    folder.break_instead(f'link-flap: "{LINK}", period: 3s, count: 3')
    folder.scenario = folder.scenario.replace(", for: 1s, name: cut", ", name: cut")
    healed = folder.history[4:6]
    for number in (1, 2):
        moved = [
            {**line, "t_ns": line["t_ns"] + 3 * number * 10**9, "cycle": number}
            for line in (*folder.history[2:4], *healed)
        ]
        folder.history[-2:-2] = moved
    folder.history[-2]["t_ns"] = at(13)
    assert judged(folder, tmp_path, line).status is status


@pytest.mark.parametrize(
    "line", ["bytes_wrong of h0 == 0", "bytes_wrong == 0 clean", "bytes_wrong <= 1 GiB during cut"]
)
def test_a_narrow_bound_leaves_the_wide_check(tmp_path: Path, line: str) -> None:
    folder = RunFolder([line])
    folder.completions[4 * 5 + 1][-1] = 4096
    verdict = folder.judge(tmp_path)
    assert {check.name for check in verdict.checks if check.status is Status.FAIL} >= {INTACT}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("bytes_wrong == 0", False),
        ("bytes_wrong < 1", False),
        ("bytes_wrong < 1 KiB", True),
        ("bytes_wrong <= 0.5 KiB", True),
        ("bytes_wrong <= 0 KiB", False),
        ("bytes_wrong <= 1 KiB", True),
        ("bytes_wrong >= 0", True),
    ],
)
def test_only_the_same_bound_takes_the_place_of_the_check_of_all_bytes(tmp_path: Path, line: str, shown: bool) -> None:
    """A looser one had hidden bytes that differed."""
    assert (INTACT in {check.name for check in RunFolder([line]).judge(tmp_path).checks}) == shown


@pytest.mark.parametrize("line", ["job_died == 1", "died_at <= 9s", "job_died <= 1", "job_died == 0"])
def test_no_bound_on_a_death_says_anything_of_a_job_that_lives(tmp_path: Path, line: str) -> None:
    folder = RunFolder([line])
    folder.completions = folder.completions[:-1]
    assert FINISHED in {check.name for check in folder.judge(tmp_path).checks if check.status is Status.FAIL}


@pytest.mark.parametrize(
    ("line", "stated"),
    [("job_died == 1", True), ("died_at <= 9s", True), ("job_died <= 1", False), ("job_died == 0", False)],
)
def test_how_a_job_ended_yields_to_a_death_that_was_stated(tmp_path: Path, line: str, stated: bool) -> None:
    """A bound that holds for a job that lives as well states no death."""
    checks = died(RunFolder([line]), 3, 8.0).judge(tmp_path).checks
    assert {check.name for check in checks if check.status is Status.FAIL} >= (set() if stated else {FINISHED})
    assert ({FINISHED, ENDED} & {check.name for check in checks}) == (set() if stated else {FINISHED})


def test_packets_between_two_faults_count_once(tmp_path: Path) -> None:
    """Both faults lie between the same two snapshots, in which ten packets were lost."""
    folder = RunFolder()
    folder.history[4:6] = [fault("heal", "ok", 3.6)]
    again = [
        fault("inject", "invoke", 4.2, cycle=1),
        fault("inject", "ok", 4.2, cycle=1),
        fault("heal", "ok", 4.3, cycle=1),
    ]
    folder.history[5:5] = again
    folder.events = folder.events[4:]  # no path rests longer than the faults
    assert judged(folder, tmp_path, "packets_lost <= 99 during faults").observed == 40
    assert judged(folder, tmp_path, "packets_lost <= 99 clean").observed == 4 * (14 - 10)


UNSEEN = "h0 reported its counters at no time of the workload outside all faults"


def test_without_snapshots_clean_counts_are_unknown(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.events = folder.events[:4]
    check = judged(folder, tmp_path, "packets_lost == 0 clean")
    assert (check.status, check.why) == (Status.INCONCLUSIVE, UNSEEN)


def test_snapshots_of_the_warm_up_tell_nothing_of_clean_time(tmp_path: Path) -> None:
    """Hosts report from `configure` on. Seen by reading: clean counts of a workload under one long fault were 0."""
    folder = RunFolder()
    folder.history[2:6] = [fault("inject", "invoke", 0.05), fault("inject", "ok", 0.051)]
    folder.events = [*folder.events[:4], *(snapshot(host, -0.5, lost=0) for host in HOSTS)]
    check = judged(folder, tmp_path, "packets_lost == 0 clean")
    assert (check.status, check.why) == (Status.INCONCLUSIVE, UNSEEN)


def test_two_snapshots_between_faults_are_clean_time(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.events = [*folder.events[:4], *(snapshot(host, t, lost=2) for host in HOSTS for t in (1, 3))]
    assert judged(folder, tmp_path, "packets_lost <= 99 clean").observed == 4 * 2


@pytest.mark.parametrize("name", ["events.jsonl", "completions.csv", "environment.json"])
def test_a_folder_without_one_of_its_files_is_not_believed(tmp_path: Path, name: str) -> None:
    folder = RunFolder(["evs_retired == 0"]).write(tmp_path)
    (folder / name).unlink()
    verdict = judge(load_record(folder))
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.reason.removesuffix(" (and 1 more)") == f"machine: its folder lacks {name}"


def test_only_too_many_wrong_bytes_are_a_fail_on_a_late_machine(tmp_path: Path) -> None:
    """A slow machine cannot make bytes wrong, but it can keep them from being sent."""
    folder = RunFolder(["bytes_wrong >= 1"])
    assert folder.fidelity is not None
    folder.fidelity["softnet_drops"] = 7
    assert folder.judge(tmp_path).status is Status.INCONCLUSIVE
    folder.expect = ["bytes_wrong <= 1"]
    folder.completions[9][-1] = 4096
    assert folder.judge(tmp_path).status is Status.FAIL


def test_nothing_is_a_share_of_nothing(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = [[*row[:4], 0, 0] for row in folder.completions]
    check = judged(folder, tmp_path, "goodput >= 97% of clean during cut")
    assert (check.status, check.why) == (Status.INCONCLUSIVE, "clean is 0: nothing to compare with")


def baseline(folder: RunFolder) -> RunFolder:
    """A run beside the one that is judged."""
    folder.scenario = folder.scenario.replace(
        "expect:\n", "variants: {mrc: {}, other: {transport: roce}}\njudge: [other]\nvariant: mrc\nexpect:\n"
    )
    return folder


def rows(verdict: Verdict) -> dict[str, Any]:
    return {check.name: verdict.decides(check) for check in verdict.checks}


def test_what_decides_a_run_that_is_not_judged(tmp_path: Path) -> None:
    missed = "step_time.p100 <= 1ms"
    folder = baseline(RunFolder([missed, "warning: bytes_wrong == 0"]))
    assert folder.judge(tmp_path).status is Status.MEASURED
    folder.completions[9][-1] = 4096
    verdict = folder.judge(tmp_path)
    assert (verdict.status, verdict.reason) == (Status.FAIL, f"network: {INTACT}: observed 4096 B, expected == 0 B")
    assert (rows(verdict)[INTACT], rows(verdict)[missed], rows(verdict)["bytes_wrong == 0"]) == (True, False, False)
    assert Verdict.from_dict(verdict.as_dict()) == verdict


def test_a_run_that_is_not_judged_and_measured_nothing_says_why(tmp_path: Path) -> None:
    folder = baseline(RunFolder(["goodput_back.p100 <= 1ms during cut"]))
    folder.history = folder.history[:-1]
    verdict = folder.judge(tmp_path)
    assert (verdict.status, verdict.reason) == (
        Status.INCONCLUSIVE,
        "machine: the fabric was as planned: observed 1, expected == 2; settle: not done",
    )


def test_a_snapshot_that_belongs_to_two_windows(tmp_path: Path) -> None:
    """The windows touch in one snapshot: each has its packets, and none is counted twice."""
    folder = RunFolder()
    folder.events = [
        *folder.events[:4],
        *(snapshot(host, t, lost) for host in ("h0", "h1", "h2", "h3") for t, lost in ((3, 2), (4, 7), (6, 13))),
    ]
    folder.history[4:6] = [fault("heal", "ok", 3.6)]
    again = [
        fault("inject", "invoke", 4.2, cycle=1),
        fault("inject", "ok", 4.2, cycle=1),
        fault("heal", "ok", 4.3, cycle=1),
    ]
    folder.history[5:5] = again
    folder.events = folder.events[4:]  # no path rests longer than the faults
    assert judged(folder, tmp_path, "packets_lost <= 99 during faults").observed == 4 * (13 - 2)
