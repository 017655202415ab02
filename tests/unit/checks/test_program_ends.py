"""How programs of the user ended: by themselves, by a fault, or stopped by the testbed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import builtin
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from tests.unit.checks.test_folder import SCENARIO, RunFolder, at

PASS, FAIL, OPEN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
PROGRAMS = SCENARIO.replace(
    "- train: {steps: 8, compute: 100ms, allreduce: 2MiB}", "- programs: {name: mine, command: env, hosts: [h0, h1]}"
)
WELL = (at(8), 0, 0)
CUT_OFF = (at(9.6), -9, 2)
"""As a program that the run ends when it is over."""


def run_of(tmp_path: Path, ended: dict[str, tuple[int, int, int]], stop: str = "", **more: Any) -> RunRecord:
    """`ended`: when the program of each host did, with which status, and whether the run killed it."""
    folder = RunFolder(scenario=PROGRAMS, **more)
    folder.completions = []
    if stop:
        folder.stop_at_limit()
        folder.history[-1]["error"] = stop
    rows = [f"{host},mine,{at(0)},{end},{status},{killed},0\n" for host, (end, status, killed) in ended.items()]
    folder.write(tmp_path)
    (tmp_path / "programs.csv").write_text("host,job,begin_ns,end_ns,status,killed,cpu_ns\n" + "".join(rows))
    return load_record(tmp_path)


@pytest.mark.parametrize(
    ("other", "stop", "expect", "status"),
    [
        (WELL, "", "programs_failed == 0", PASS),
        (CUT_OFF, "over", "programs_failed == 0", OPEN),
        (CUT_OFF, "over", "programs_failed >= 1", OPEN),
        (CUT_OFF, "over", "programs_failed <= 1", PASS),
        (CUT_OFF, "over", "programs_failed of h0 == 0", PASS),
        (CUT_OFF, "over", "program_time.p100 <= 60s", OPEN),
        (CUT_OFF, "over", "program_time.p100 <= 9s", FAIL),
        (CUT_OFF, "over", "job_died == 0", OPEN),
        ((at(6), -15, 1), "", "programs_failed == 1", PASS),
        ((at(6), -11, 0), "", "programs_failed == 1", PASS),
        ((at(6), 3, 0), "", "programs_failed == 1", PASS),
    ],
)
def test_a_program_that_the_run_ended_is_not_known_to_have_failed(
    tmp_path: Path, other: tuple[int, int, int], stop: str, expect: str, status: Status
) -> None:
    record = run_of(tmp_path, {"h0": WELL, "h1": other}, stop, expect=[expect])
    assert next(check for check in judge(record).checks if check.name == expect).status is status


def test_what_the_run_ended_fails_no_check_of_every_run(tmp_path: Path) -> None:
    checks = {check.name: check for check in judge(run_of(tmp_path, {"h0": WELL, "h1": CUT_OFF}, "over")).checks}
    found = checks[builtin.PROGRAMS_ENDED]
    assert (found.status, found.why) == (OPEN, "h1 did not: the testbed stopped them (over)")


def test_the_others_of_a_job_of_which_one_failed_may_have_ended_well(tmp_path: Path) -> None:
    record = run_of(tmp_path, {"h0": (at(2), 9, 0), "h1": (at(7), -15, 2)})
    assert ask(record, "programs_failed of h0").value == 1
    assert ask(record, "programs_failed of h1").why == (
        "the testbed stopped programs (another program of its job had failed)"
    )
    checks = {check.name: check for check in judge(record).checks}
    assert (checks[builtin.PROGRAMS_ENDED].status, checks[builtin.PROGRAMS_ENDED].observed) == (FAIL, 1)


def test_programs_of_a_job_that_died_failed_by_the_fault(tmp_path: Path) -> None:
    folder = {"h0": WELL, "h1": CUT_OFF}
    error = {"event": "qp_error", "t_ns": at(3), "host": "h1", "peer": "h0", "qp": "own", "reason": "retries"}
    run_of(tmp_path, folder, "h1: QP own to h0 failed")
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(f"{json.dumps(error)}\n")
    assert ask(load_record(tmp_path), "programs_failed").value == 1


def test_a_written_limit_says_that_programs_should_have_ended(tmp_path: Path) -> None:
    run_of(tmp_path, {"h0": WELL, "h1": CUT_OFF}, "over")
    text = (tmp_path / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(f"time_limit: 130s\n{text}")
    assert ask(load_record(tmp_path), "programs_failed").value == 1
