"""Outcomes of runs that never ran."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.result import NOT_JUDGED, CheckResult, Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.lines import Party

SCENARIO = """\
name: NAME
seed: 7
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 3, compute: 100ms, allreduce: 1MiB}}]
expect:
  - qp_errors == 0
  - step_time.p100 <= 2s
"""
LATE = FidelityFigure("timers late (p99)", 7.0, 5.0, "ms", False)
CODES = {
    Status.PASS: ExitCode.PASS,
    Status.FAIL: ExitCode.FAIL,
    Status.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Status.MEASURED: ExitCode.PASS,
    Status.DIED: ExitCode.PASS,
}


def write_scenario(folder: Path, name: str) -> Path:
    """A scenario file."""
    path = folder / f"{name}.yaml"
    path.write_text(SCENARIO.replace("NAME", name), encoding="utf-8")
    return path


def outcome(status: Status = Status.PASS, name: str = "one", folder: str = "results/one") -> RunOutcome:
    """What a run with two expectations came to; the second one decides."""
    lost = status is Status.INCONCLUSIVE
    checks = (
        CheckResult("qp_errors == 0", status if lost else Status.PASS, 0, "== 0"),
        CheckResult(
            *("step_time.p100 <= 2s", status, 1.5 if status is not Status.FAIL else 2.5, "<= 2", "s"),
            line=7,
            place="one.yaml:7",
        ),
        CheckResult("data were moved", status if lost else Status.PASS, 9, "> 0", "MiB"),
    )
    verdict = Verdict(status, name, checks, Fidelity((LATE,) if lost else (), 9.0), judged=status not in NOT_JUDGED)
    return RunOutcome(CODES[status], 12.5, verdict, Path(folder), "3 steps, P100 1.5 s", 20_500_000)


def without_data(name: str = "one", folder: str = "results/one") -> RunOutcome:
    """Inconclusive on a machine that kept time: there is nothing to judge, and another try would have no more."""
    open_check = CheckResult(
        "recovery.p100 <= 8 rtt", Status.INCONCLUSIVE, why="no EV was retired by a fault", who=Party.SCENARIO
    )
    verdict = Verdict(Status.INCONCLUSIVE, name, (open_check,), Fidelity((), 9.0))
    return RunOutcome(ExitCode.INCONCLUSIVE, 12.5, verdict, Path(folder), "3 steps, P100 1.5 s", 20_500_000)


def reasons(verdict: Verdict) -> tuple[str, ...]:
    """Why the machine is not believed."""
    return tuple(cause.said for cause in causes_of_machine(verdict.fidelity))
