"""From a run folder to a verdict: each status, each limit on both sides, and nothing passes by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import builtin
from mrc_testbed.testbed.checks.fidelity import NO_FILE
from mrc_testbed.testbed.checks.guard import guarded
from mrc_testbed.testbed.checks.judge import judge, read_verdict, write_verdict
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.summary import summary_text
from mrc_testbed.testbed.rundir.files import RecordError
from tests.unit.checks.test_folder import HOSTS, RTT_NS, SCENARIO, RunFolder, at, fault, phase
from tests.unit.outcomes import reasons

MIBPS = 8 * 2**20 / 1e6
"""A MiB/s in Mb/s."""
PASS, FAIL, OPEN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE


def the(verdict: Verdict, name: str) -> CheckResult:
    (check,) = [check for check in verdict.checks if check.name == name]
    return check


def one(folder: RunFolder, tmp_path: Path, line: str) -> CheckResult:
    folder.expect = [line]
    return the(folder.judge(tmp_path), line)


def test_a_usual_run_passes(tmp_path: Path) -> None:
    verdict = RunFolder(expect=["qp_errors == 0", "step_time.p100 <= 1.5 x clean.median during faults"]).judge(tmp_path)
    assert verdict.status is PASS
    assert verdict.exit_code is ExitCode.PASS
    assert verdict.fidelity.ok
    assert verdict.scenario == "small"


def test_a_run_without_expectations_is_judged_by_the_checks_of_every_run(tmp_path: Path) -> None:
    verdict = RunFolder().judge(tmp_path)
    assert verdict.status is PASS
    assert [check.name for check in verdict.checks] == [
        builtin.FINISHED,
        builtin.MOVED,
        builtin.AS_PLANNED,
        builtin.FAULTS_DONE,
        builtin.INTACT,
    ]


def test_without_faults_nothing_is_asked_about_them(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.scenario = folder.scenario[: folder.scenario.index("faults:")] + "expect:\n"
    folder.history = [line for line in folder.history if "fault" not in line]
    folder.expect = ["bytes_wrong == 0"]
    verdict = folder.judge(tmp_path)
    assert verdict.status is PASS
    assert {check.name for check in verdict.checks}.isdisjoint({builtin.FAULTS_DONE, builtin.INTACT})


@pytest.mark.parametrize(
    ("line", "status", "observed", "expected", "unit", "margin"),
    [
        ("step_time.p100 <= 1.5 x clean.median during faults", PASS, 1.2, "<= 1.5", "s", 0.2),
        ("step_time.p100 <= 1.1 x clean.median during faults", FAIL, 1.2, "<= 1.1", "s", -0.1 / 1.1),
        ("step_time.p100 <= 1200 ms", PASS, 1200, "<= 1200", "ms", 0),
        ("step_time.p100 < 1200 ms", FAIL, 1200, "< 1200", "ms", 0),
        ("goodput >= 50% of clean during cut", PASS, 8 * MIBPS / 2.3, ">= 16.8", "Mb/s", (8 / 2.3 - 2) / 2),
        ("goodput >= 97% of clean during cut", FAIL, 8 * MIBPS / 2.3, ">= 32.5", "Mb/s", (8 / 2.3 - 3.88) / 3.88),
        ("goodput >= 10 mbit", PASS, 32 * 8 * (1 << 20) / 8.303e6, ">= 10", "mbit", None),
        ("recovery.p100 <= 6 rtt", PASS, 149 / 25, "<= 6", "rtt", (150 - 149) / 150),
        ("recovery.p100 <= 5.9 rtt", FAIL, 149 / 25, "<= 5.9", "rtt", None),
        ("qp_errors == 0", PASS, 0, "== 0", "", None),
        ("packets_lost != 56", FAIL, 56, "!= 56", "", None),
        ("steps_done > 7", PASS, 8, "> 7", "", 1 / 7),
        ("bytes_wrong < 1 KiB", PASS, 0, "< 1", "KiB", 1),
    ],
)
def test_expectations(
    tmp_path: Path, line: str, status: Status, observed: float, expected: str, unit: str, margin: float | None
) -> None:
    check = one(RunFolder(), tmp_path, line)
    assert (check.status, check.expected, check.unit) == (status, expected, unit)
    assert check.observed == pytest.approx(observed)
    if margin is not None:
        assert check.margin == pytest.approx(margin)
    assert check.line == 9


def test_what_a_relative_bound_was_taken_from_is_said(tmp_path: Path) -> None:
    assert one(RunFolder(), tmp_path, "step_time.p100 <= 1.1 x clean.median").why == "clean.median is 1 s"
    assert one(RunFolder(), tmp_path, "goodput >= 97% of clean").why == "clean is 33.6 Mb/s"
    assert one(RunFolder(), tmp_path, "recovery.p100 <= 5 rtt").why == "1 rtt is 25 ms"


def test_a_bound_in_rtt_needs_a_measured_rtt(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.environment = {}
    check = one(folder, tmp_path, "recovery.p100 <= 6 rtt")
    assert (check.status, check.why) == (OPEN, "the base RTT was not measured in warm-up")
    assert the(folder.judge(tmp_path), builtin.FINISHED).status is OPEN, "no path answered, so T is not known either"


def test_lacking_data_are_inconclusive(tmp_path: Path) -> None:
    folder = RunFolder(expect=["recovery.p100 <= 6 rtt"])
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert verdict.exit_code is ExitCode.INCONCLUSIVE
    assert the(verdict, "recovery.p100 <= 6 rtt").why == "no EV was retired by a fault"


def test_a_fail_outweighs_an_open_check(tmp_path: Path) -> None:
    folder = RunFolder(expect=["recovery.p100 <= 6 rtt", "steps_done == 9"])
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    verdict = folder.judge(tmp_path)
    assert verdict.status is FAIL
    assert verdict.exit_code is ExitCode.FAIL


def test_a_crashed_check_is_inconclusive_with_its_reason() -> None:
    def crash() -> CheckResult:
        raise ZeroDivisionError("oh")

    check = guarded("a check", 3, crash)
    assert (check.status, check.line) == (OPEN, 3)
    assert check.why == "the check itself failed: ZeroDivisionError('oh')"


def test_ranks_that_did_not_finish_fail_with_the_reason(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = [row for row in folder.completions if row[1] < 5 or row[0] != "h2"]
    folder.events.append({"event": "fatal", "t_ns": at(6), "host": "h2", "reason": "out of memory"})
    check = the(folder.judge(tmp_path), builtin.FINISHED)
    assert (check.status, check.observed, check.expected) == (FAIL, 5, "== 8")
    assert check.why == "1 of 4 ranks did not; h2 ended after 5 (h2: out of memory)"


@pytest.mark.parametrize(
    ("op", "seconds", "why"),
    [
        ("inject", 3.74, ""),
        ("inject", 3.76, "cut cycle 0: injected 260 ms late"),
        ("heal", 4.74, ""),
        ("heal", 16.5, "cut cycle 0: healed 12 s late"),
        ("heal", 3.9, ""),  # the workload was over
    ],
)
def test_a_fault_far_from_its_time_is_not_the_one_that_was_asked_for(
    op: str, seconds: float, why: str, tmp_path: Path
) -> None:
    folder = RunFolder()
    for line in folder.history:
        if line["op"] == op:
            line["t_ns"] = at(seconds)
    verdict = folder.judge(tmp_path)
    assert the(verdict, builtin.FAULTS_DONE).why == why
    assert verdict.status is (OPEN if why else PASS)


def test_a_broken_qp_is_named(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = folder.completions[:-1]
    folder.events.append({"event": "qp_error", "t_ns": at(6), "host": "h1", "reason": "retries exceeded"})
    error = "h1: QP 1>2 to h2 failed: retries exceeded"
    folder.history.append({"t_ns": at(7), "op": "workload", "type": "fail", "error": error})
    assert f"({error})" in the(folder.judge(tmp_path), builtin.FINISHED).why


def test_the_time_limit_is_named_when_it_ended_the_run(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = folder.completions[:-1]
    folder.history.append({"t_ns": at(90), "op": "workload", "type": "fail", "error": "time limit of 90s"})
    assert "(time limit of 90s)" in the(folder.judge(tmp_path), builtin.FINISHED).why


def test_a_workload_that_never_began_is_no_fail_of_the_transport(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.completions = []
    folder.history = folder.history[:1]
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert the(verdict, builtin.FINISHED).why == "the workload did not begin"
    assert the(verdict, builtin.MOVED).status is OPEN
    assert the(verdict, builtin.INTACT).status is OPEN


def test_a_run_that_moved_nothing_fails(tmp_path: Path) -> None:
    folder = RunFolder()
    for row in folder.completions:
        row[4] = 0
    verdict = folder.judge(tmp_path)
    assert the(verdict, builtin.MOVED).status is FAIL
    assert verdict.status is FAIL


def without(folder: RunFolder, **fields: Any) -> RunFolder:
    folder.history = [line for line in folder.history if any(line.get(key) != fields[key] for key in fields)]
    return folder


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"op": "inject", "type": "ok"}, "cut cycle 0: never injected"),
        ({"op": "heal", "type": "ok"}, "cut cycle 0: never healed"),
    ],
)
def test_faults_that_were_not_done_leave_the_run_open(tmp_path: Path, fields: dict[str, str], why: str) -> None:
    verdict = without(RunFolder(), **fields).judge(tmp_path)
    check = the(verdict, builtin.FAULTS_DONE)
    assert (check.status, check.observed, check.why) == (OPEN, 0, why)
    assert verdict.status is OPEN


def test_a_fault_that_failed_leaves_the_run_open(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.history.append(fault("heal", "fail", 4.6, error="up2: no such device"))
    assert the(folder.judge(tmp_path), builtin.FAULTS_DONE).why == "up2: no such device"


@pytest.mark.parametrize(("name", "why"), [("verify", "verify: not done"), ("settle", "settle: not done")])
def test_a_fabric_that_was_not_read_back_leaves_the_run_open(tmp_path: Path, name: str, why: str) -> None:
    verdict = without(RunFolder(), op="phase", phase=name).judge(tmp_path)
    assert the(verdict, builtin.AS_PLANNED).why == why
    assert verdict.status is OPEN


def test_a_fabric_unlike_its_plan_leaves_the_run_open(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.history[-1] = phase("settle", 9, "fail", error="p0-t0-0: a route is missing")
    assert the(folder.judge(tmp_path), builtin.AS_PLANNED).why == "settle: p0-t0-0: a route is missing"


def set_figure(folder: RunFolder, name: str, value: Any) -> RunFolder:
    assert folder.fidelity is not None
    per_host = name in ("run_delay", "lateness_p99_ns", "lateness_max_ns")
    folder.fidelity[name] = {**dict.fromkeys(HOSTS, 0), "h2": value} if per_host else value
    return folder


@pytest.mark.parametrize(
    ("name", "inside", "outside", "why"),
    [
        ("lateness_p99_ns", 5_000_000, 5_000_001, "timers late (p99): observed 5 ms, expected <= 5 ms"),
        ("lateness_max_ns", 100_000_000, 100_600_000, "timers late (worst): observed 101 ms, expected <= 100 ms"),
        ("run_delay", 0.25, 0.26, "waiting for a CPU: observed 26 %, expected <= 25 %"),
        ("udp_rcvbuf_errors", 0, 1, "socket drops: observed 1 packets, expected <= 0 packets"),
        ("softnet_drops", 0, 1, "kernel input drops: observed 1 packets, expected <= 0 packets"),
        ("wall_clock_step_ns", 5_000_000, 5_100_000, "wall clock jumps: observed 5.1 ms, expected <= 5 ms"),
        ("shaped_rate_error", 0.05, 0.06, "port rate error: observed 6 %, expected <= 5 %"),
        ("cpu_pressure_some", 0.75, 0.76, "CPU pressure: observed 76 %, expected <= 75 %"),
    ],
)
def test_each_limit_on_both_sides(tmp_path: Path, name: str, inside: Any, outside: Any, why: str) -> None:
    assert set_figure(RunFolder(), name, inside).judge(tmp_path).status is PASS
    verdict = set_figure(RunFolder(), name, outside).judge(tmp_path)
    assert verdict.status is OPEN
    assert reasons(verdict) == (why,)
    assert all(check.status is OPEN for check in verdict.checks)
    assert verdict.checks[0].unbelieved is PASS
    assert verdict.checks[0].why == f"would be pass, but {why}"


@pytest.mark.parametrize(
    ("late", "why"),
    [(None, None), (0, ""), (20, ""), (21, "")],
)
def test_packets_that_wait_for_their_endpoint_have_a_limit(tmp_path: Path, late: int | None, why: str | None) -> None:
    """Of 1000 packets of h2; None: a run from before they were counted."""
    folder = RunFolder()
    assert folder.counters is not None
    for host, found in folder.counters["hosts"].items():
        counted = {} if late is None else {"packets_late": late if host == "h2" else 0}
        found["counters"] |= {"packets_in": 1000, **counted}
    figures = folder.judge(tmp_path).fidelity.figures
    assert [figure.why for figure in figures if figure.name == "packets handled late"] == [why][: why is not None]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, None),
        ({"share": 0.02, "node": "p0-t1-0", "port": "down1", "most_ns": 7_000_000}, ""),
        (
            {"share": 0.13, "node": "p0-t1-0", "port": "down1", "most_ns": 79_000_000},
            "of what came in by down1 of p0-t1-0, up to 79 ms late",
        ),
        ({"share": "much"}, "not measured"),
        ([0], "not measured"),
    ],
)
def test_a_link_that_was_slower_than_it_should_be_has_a_limit(tmp_path: Path, told: Any, why: str | None) -> None:
    """None: a run from before it was counted."""
    folder = RunFolder()
    assert folder.fidelity is not None
    if told is not None:
        folder.fidelity["late_on_links"] = told
    verdict = folder.judge(tmp_path)
    figures = verdict.fidelity.figures
    assert [figure.why for figure in figures if figure.name == "packets late on a link"] == [why][: why is not None]
    assert verdict.status is (OPEN if why else PASS)


def test_a_fabric_that_keeps_no_time_of_its_links_says_so(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity["unavailable"] = {"late_on_links": "plain shapers"}
    (found,) = (one for one in folder.judge(tmp_path).fidelity.figures if one.name == "packets late on a link")
    assert (found.ok, found.why) == (True, "unknown on this machine: plain shapers")


KEPT = {"dropped": 0, "unstamped": 0, "late_p99_ns": 1_000_000, "late_max_ns": 2_000_000}


def over_the_kernels_delay(figures: dict[str, int] | None) -> RunFolder:
    folder = RunFolder()
    folder.environment["delay"] = "nfqueue"
    assert folder.fidelity is not None
    if figures is not None:
        folder.fidelity["kernel_delay"] = figures
    return folder


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"dropped": 1}, "drops of the kernel delay: observed 1 packets, expected <= 0 packets"),
        ({"unstamped": 2}, "packets without a time of arrival: observed 2 packets, expected <= 0 packets"),
        ({"late_p99_ns": 6_000_000}, "kernel delay late (p99): observed 6 ms, expected <= 5 ms"),
        ({"late_max_ns": 101_000_000}, "kernel delay late (worst): observed 101 ms, expected <= 100 ms"),
    ],
)
def test_the_kernels_delay_has_limits_too(tmp_path: Path, wrong: dict[str, int], why: str) -> None:
    assert over_the_kernels_delay(KEPT).judge(tmp_path).status is PASS
    assert reasons(over_the_kernels_delay({**KEPT, **wrong}).judge(tmp_path)) == (why,)


def test_a_run_over_the_kernels_delay_without_its_figures_is_open(tmp_path: Path) -> None:
    verdict = over_the_kernels_delay(None).judge(tmp_path)
    assert verdict.status is OPEN
    assert reasons(verdict)[0] == "drops of the kernel delay: not measured"


@pytest.mark.parametrize(
    ("rtt", "name", "limit_ns"),
    [
        ("1ms", "lateness_p99_ns", 1_250_000),
        ("4ms", "lateness_p99_ns", 1_250_000),
        ("100ms", "lateness_p99_ns", 25_000_000),
        ("4ms", "lateness_max_ns", 100_000_000),
        ("100ms", "lateness_max_ns", 500_000_000),
    ],
)
def test_limits_of_lateness_grow_with_the_round_trip_but_not_shrink_below_the_shortest_timer(
    tmp_path: Path, rtt: str, name: str, limit_ns: int
) -> None:
    scenario = SCENARIO.replace("rtt: 20ms", f"rtt: {rtt}")
    for value, status in ((limit_ns, PASS), (limit_ns + 1, OPEN)):
        folder = set_figure(RunFolder(scenario=scenario), name, value)
        figures = folder.judge(tmp_path).fidelity.figures
        assert [figure.ok for figure in figures if figure.name.startswith("timers late")].count(False) == (
            status is OPEN
        )


def test_the_worst_host_decides(tmp_path: Path) -> None:
    folder = set_figure(RunFolder(), "run_delay", 0.9)
    assert reasons(folder.judge(tmp_path)) == ("waiting for a CPU: observed 90 %, expected <= 25 %",)


@pytest.mark.parametrize(
    "name",
    [
        "lateness_p99_ns",
        "lateness_max_ns",
        "run_delay",
        "udp_rcvbuf_errors",
        "softnet_drops",
        "wall_clock_step_ns",
        "cpu_pressure_some",
    ],
)
@pytest.mark.parametrize("value", [None, "many", {}, float("nan"), float("inf"), 10**400])
def test_a_figure_that_is_lacking_is_not_ok(tmp_path: Path, name: str, value: Any) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    folder.fidelity[name] = value
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert reasons(verdict)[0].endswith("not measured")


def test_a_figure_lacks_when_one_host_has_none(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.fidelity is not None
    del folder.fidelity["run_delay"]["h3"]
    assert reasons(folder.judge(tmp_path)) == ("waiting for a CPU: not measured",)
    folder.fidelity["run_delay"]["h3"] = None
    assert reasons(folder.judge(tmp_path)) == ("waiting for a CPU: not measured",)


def test_a_figure_that_this_machine_cannot_give_may_be_explained(tmp_path: Path) -> None:
    folder = set_figure(RunFolder(), "shaped_rate_error", None)
    assert folder.judge(tmp_path).status is OPEN
    assert folder.fidelity is not None
    folder.fidelity["unavailable"] = {"shaped_rate_error": "the run was shorter than 1 s"}
    verdict = folder.judge(tmp_path)
    assert verdict.status is PASS
    (figure,) = [figure for figure in verdict.fidelity.figures if figure.observed is None]
    assert figure.why == "unknown on this machine: the run was shorter than 1 s"


def test_packets_that_nothing_accounts_for_make_a_run_unbelievable(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    folder.counters["ports"]["p1-t1-0"]["down0"]["in_data"] += 2
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert reasons(verdict)[1].startswith(
        "unexplained packets: observed 6 packets, expected <= 0 packets; link p1-t0-0:p1-t1-0 from"
    )


def test_what_a_cut_link_lost_is_accounted_for(tmp_path: Path) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    folder.counters["ports"]["p0-t0-0"]["up1"] |= {"out_data": 3, "out_passed": 3}
    folder.counters["ports"]["p0-t0-0"]["down0"] |= {"in_data": 3, "rx_packets": 3}
    folder.counters["hosts"]["h0"]["counters"] |= {"data_sent": 3, "packets_out": 3}
    assert folder.judge(tmp_path).status is PASS
    folder.history = [line for line in folder.history if line.get("op") != "inject"]
    assert "p0-t0-0" in reasons(folder.judge(tmp_path))[0]


@pytest.mark.parametrize("spoil", [lambda c: c.pop("ports"), lambda c: c["ports"]["h0"]["port0"].pop("in_data")])
def test_books_that_lack_something_are_not_ok(tmp_path: Path, spoil: Any) -> None:
    folder = RunFolder()
    assert folder.counters is not None
    spoil(folder.counters)
    assert folder.judge(tmp_path).status is OPEN


def test_without_any_figures_nothing_is_believed(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.fidelity = None
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert reasons(verdict) == (NO_FILE,)


def test_an_interrupted_run_is_not_believed(tmp_path: Path) -> None:
    folder = RunFolder()
    folder.history.append({"t_ns": at(5), "op": "interrupt", "type": "ok", "error": "SIGINT"})
    verdict = folder.judge(tmp_path)
    assert verdict.status is OPEN
    assert reasons(verdict) == ("the run was interrupted: SIGINT",)


def test_a_slow_machine_takes_a_fail_back(tmp_path: Path) -> None:
    folder = set_figure(RunFolder(expect=["steps_done == 9"]), "run_delay", 0.9)
    verdict = folder.judge(tmp_path)
    check = the(verdict, "steps_done == 9")
    assert (verdict.status, check.status, check.unbelieved) == (OPEN, OPEN, FAIL)


@pytest.mark.parametrize("expect", [["bytes_wrong == 0"], []])
def test_wrong_bytes_fail_on_any_machine(tmp_path: Path, expect: list[str]) -> None:
    folder = set_figure(RunFolder(expect=expect), "run_delay", 0.9)
    folder.completions[3][5] = 1
    verdict = folder.judge(tmp_path)
    assert verdict.status is FAIL
    check = the(verdict, expect[0] if expect else builtin.INTACT)
    assert (check.status, check.observed, check.hard) == (FAIL, 1, True)
    assert the(verdict, builtin.FINISHED).status is OPEN


def test_data_on_a_bad_ev_fail_on_any_machine(tmp_path: Path) -> None:
    folder = set_figure(RunFolder(expect=["data_on_bad_ev == 0"]), "run_delay", 0.9)
    assert folder.counters is not None
    folder.counters["hosts"]["h1"]["counters"]["data_on_bad_ev"] = 1
    assert folder.judge(tmp_path).status is FAIL


def test_a_hard_check_that_holds_still_needs_good_time(tmp_path: Path) -> None:
    folder = set_figure(RunFolder(expect=["bytes_wrong == 0"]), "run_delay", 0.9)
    assert the(folder.judge(tmp_path), "bytes_wrong == 0").status is OPEN


def test_an_empty_run_folder_is_inconclusive(tmp_path: Path) -> None:
    folder = RunFolder(expect=["qp_errors == 0", "bytes_wrong == 0", "steps_done == 8", "queue_drops == 0"]).write(
        tmp_path
    )
    for path in folder.iterdir():
        if path.name != "scenario.yaml":
            path.unlink()
    verdict = judge(load_record(folder))
    assert verdict.status is OPEN
    assert all(check.status is OPEN for check in verdict.checks)


def test_verdicts_are_written_and_read_back(tmp_path: Path) -> None:
    verdict = set_figure(RunFolder(expect=["recovery.p100 <= 6 rtt"]), "run_delay", 0.9).judge(tmp_path)
    write_verdict(verdict, tmp_path)
    raw = json.loads((tmp_path / "verdict.json").read_text())
    assert raw["verdict"] == "inconclusive"
    assert {"name", "status", "observed", "expected", "unit", "why", "margin", "line"} <= raw["checks"][0].keys()
    assert raw["fidelity"]["ok"] is False
    assert read_verdict(tmp_path) == verdict


@pytest.mark.parametrize("text", ["", "{}", '{"verdict": "maybe", "checks": []}', '{"checks": 3}'])
def test_a_file_that_is_no_verdict(tmp_path: Path, text: str) -> None:
    (tmp_path / "verdict.json").write_text(text)
    with pytest.raises(RecordError, match="is not a verdict"):
        read_verdict(tmp_path)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1.0, "1"), (0.3, "0.3"), (123.4, "123"), (5.964, "5.96")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_the_fixture_has_the_rtt_that_the_tests_reckon_with(tmp_path: Path) -> None:
    assert load_record(RunFolder().write(tmp_path)).base_rtt_ns == RTT_NS


def break_off(folder: RunFolder, at_step: int = 3) -> RunFolder:
    """A QP breaks in that step; the run goes on to its last figures."""
    folder.completions = [row for row in folder.completions if row[1] < at_step]
    folder.history = [line for line in folder.history if line != {"t_ns": at(8.3), "op": "workload", "type": "ok"}]
    folder.events.append({"event": "qp_error", "t_ns": at(4.4), "host": "h0", "peer": "h2", "reason": "retries"})
    return folder


@pytest.mark.parametrize(
    ("expect", "status"),
    [
        (["qp_errors >= 1", "unfinished >= 1"], PASS),
        (["qp_errors >= 1", "unfinished == 4"], PASS),
        (["qp_errors >= 1"], FAIL),  # nobody said that the job may end early
        (["qp_errors >= 1", "warning: unfinished >= 1"], FAIL),
        (["qp_errors >= 1", "unfinished == 0"], FAIL),
        (["qp_errors >= 1", "unfinished >= 0"], FAIL),  # took "every rank finished all steps" away
        (["qp_errors >= 1", "unfinished <= 4"], FAIL),
        (["qp_errors >= 1", "job_died >= 0"], FAIL),
    ],
)
def test_a_broken_qp_can_be_the_right_outcome(tmp_path: Path, expect: list[str], status: Status) -> None:
    folder = break_off(RunFolder(expect=expect))
    verdict = folder.judge(tmp_path)
    assert verdict.status is status, verdict.reason


def test_a_job_that_finished_is_not_unfinished(tmp_path: Path) -> None:
    verdict = RunFolder(expect=["unfinished >= 1"]).judge(tmp_path)
    assert (verdict.status, verdict.checks[0].observed) == (FAIL, 0)
    assert the(verdict, builtin.FINISHED).status is PASS


@pytest.mark.parametrize("loose", ["unfinished >= 0", "unfinished <= 3", "unfinished >= 1", "unfinished != 2"])
def test_a_job_that_did_half_and_did_not_die_fails_whatever_the_scenario_says_of_unfinished_ranks(
    tmp_path: Path, loose: str
) -> None:
    folder = break_off(RunFolder(expect=[loose], scenario=f"time_limit: 60s\n{SCENARIO}"))
    folder.events.pop()
    folder.stop_at_limit()
    verdict = folder.judge(tmp_path)
    assert (verdict.status, the(verdict, builtin.FINISHED).status) == (FAIL, FAIL)


@pytest.mark.parametrize("loose", ["bytes_wrong >= 0", "bytes_wrong <= 1 GiB", "bytes_wrong != 3", "bytes_wrong >= 7"])
def test_a_loose_bound_of_wrong_bytes_does_not_take_the_check_away(tmp_path: Path, loose: str) -> None:
    folder = RunFolder(expect=[loose])
    folder.completions[3][5] = 7
    verdict = folder.judge(tmp_path)
    assert (verdict.status, the(verdict, builtin.INTACT).status) == (FAIL, FAIL)


def test_a_death_in_the_first_step_that_was_asked_for_passes(tmp_path: Path) -> None:
    """No byte had arrived whole by then: that is what the death means."""
    verdict = break_off(RunFolder(expect=["job_died == 1"]), at_step=0).judge(tmp_path)
    assert verdict.status is PASS, verdict.reason


def test_the_same_check_is_not_shown_twice(tmp_path: Path) -> None:
    verdict = RunFolder(expect=["unfinished == 0", "bytes_wrong == 0"]).judge(tmp_path)
    assert not {builtin.FINISHED, builtin.INTACT} & {check.name for check in verdict.checks}
    assert verdict.status is PASS


def test_whether_a_workload_that_never_began_would_have_ended_is_not_known(tmp_path: Path) -> None:
    folder = RunFolder(expect=["unfinished >= 1"])
    folder.completions, folder.history, folder.events = [], folder.history[:1], []
    assert folder.judge(tmp_path).checks[0].status is OPEN


def test_a_warning_about_wrong_bytes_does_not_take_the_check_away(tmp_path: Path) -> None:
    folder = RunFolder(expect=["warning: bytes_wrong == 0"])
    folder.completions[3][5] = 7
    verdict = folder.judge(tmp_path)
    assert (verdict.status, the(verdict, builtin.INTACT).status) == (FAIL, FAIL)


def test_the_place_of_an_expectation_is_in_the_file_that_the_user_wrote(tmp_path: Path) -> None:
    folder = RunFolder(expect=["steps_done == 9", "qp_errors == 1"])
    assert [check.place for check in folder.judge(tmp_path).checks[:2]] == ["scenario.yaml:9", "scenario.yaml:10"]
    folder.environment |= {"scenario_file": "mine/cut.yaml", "expect_lines": [24, None]}
    verdict = folder.judge(tmp_path)
    assert [check.place for check in verdict.checks[:2]] == ["mine/cut.yaml:24", "command line"]
    assert [check.line for check in verdict.checks[:2]] == [9, 10]
    assert "mine/cut.yaml:24" in summary_text(verdict, load_record(tmp_path))
    assert Verdict.from_dict(verdict.as_dict()) == verdict


def test_a_fault_that_came_late_is_the_machine_s_doing_and_one_that_never_came_is_not(tmp_path: Path) -> None:
    folder = RunFolder()
    for line in folder.history:
        if line.get("fault"):
            line["t_ns"] += at(0.9) - at(0)
    late = folder.judge(tmp_path)
    assert (late.status, late.spoiled) == (OPEN, True)
    folder.history = [line for line in folder.history if "fault" not in line]
    never = folder.judge(tmp_path)
    assert (never.status, never.spoiled) == (OPEN, False)


def test_a_slow_machine_spoils_a_run_and_a_lacking_file_does_not(tmp_path: Path) -> None:
    slow = set_figure(RunFolder(), "run_delay", 0.9).judge(tmp_path)
    assert (slow.status, slow.spoiled) == (OPEN, True)
    folder = RunFolder()
    folder.fidelity = None
    (tmp_path / "fidelity.json").unlink()
    killed = folder.judge(tmp_path)
    assert (killed.status, killed.spoiled) == (OPEN, False)
    folder.history.append({"t_ns": at(9), "op": "interrupt", "type": "fail", "error": "too late", "late": True})
    late = folder.judge(tmp_path)
    assert (late.status, late.spoiled) == (OPEN, True)
    assert Verdict.from_dict(late.as_dict()).spoiled


def test_a_line_for_other_cells_does_not_apply_and_decides_nothing(tmp_path: Path) -> None:
    lines = [
        "qp_errors == 0",
        '{tcp: "qp_errors >= 1", roce: "job_died == 1"}',
        '{tcp: "steps_done >= 99", mrc: "steps_done == 8"}',
    ]
    verdict = RunFolder(expect=lines).judge(tmp_path)
    elsewhere, here = verdict.checks[1:3]
    assert (elsewhere.status, elsewhere.why) == (Status.NOT_APPLICABLE, "for tcp, roce only")
    assert here.name == "steps_done == 8"
    assert here.place == "scenario.yaml:11"
    assert verdict.status is Status.PASS
    assert "every rank finished all steps" in [check.name for check in verdict.checks]
