"""How programs of the user ended: by themselves, by a fault, or stopped by the testbed."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import builtin
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.judge import judge, read_verdict, write_verdict
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.report.frames.run import load_run
from mrc_testbed.testbed.rundir.lines import Party
from tests.unit.checks.test_ends import one_dies
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


def test_ends_are_data_of_the_verdict(tmp_path: Path) -> None:
    record = run_of(tmp_path, {"h0": (at(2), 3, 0), "h1": CUT_OFF}, "over")
    verdict = judge(record)
    assert [astuple(end) for end in verdict.ends] == [
        ("job", "mine", "", "stopped by the testbed", at(9.5), "over"),
        ("program", "h0", "", "by itself", at(2), "status 3"),
        ("program", "h1", "", "stopped by the testbed", at(9.5), "over"),
    ]
    write_verdict(verdict, tmp_path)
    frame = load_run(tmp_path).ends
    assert frame[["name", "how", "t_s"]].values.tolist()[1] == ["h0", "by itself", 2.0]
    assert read_verdict(tmp_path).ends == verdict.ends


def test_a_qp_that_failed_has_a_row_and_so_has_its_job(tmp_path: Path) -> None:
    assert [astuple(end) for end in judge(load_record(one_dies().write(tmp_path))).ends] == [
        ("job", "quick", "", "by itself", at(8.3), ""),
        ("job", "job-2", "", "by a fault", at(3), "retries"),
        ("qp", "3>1/allreduce/0", "h3", "by a fault", at(3), "retries"),
    ]


def test_a_written_limit_says_that_programs_should_have_ended(tmp_path: Path) -> None:
    run_of(tmp_path, {"h0": WELL, "h1": CUT_OFF}, "over")
    text = (tmp_path / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(f"time_limit: 130s\n{text}")
    assert ask(load_record(tmp_path), "programs_failed").value == 1


@pytest.mark.parametrize(
    ("stepped", "status", "why"),
    [
        (("h0", "h1"), PASS, ""),
        (("h0",), FAIL, "no line of h1 matched 'done'"),
        (("h1",), FAIL, "no line of h0 matched 'done'"),
        ((), FAIL, "no line of h0 matched 'done'"),
    ],
)
def test_each_program_prints_the_end_of_its_steps(
    tmp_path: Path, stepped: tuple[str, ...], status: Status, why: str
) -> None:
    run_of(tmp_path, {"h0": WELL, "h1": WELL})
    text = (tmp_path / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(text.replace("command: env", "command: env, step: done"))
    with (tmp_path / "completions.csv").open("a") as file:
        file.writelines(f"{host},0,{at(0)},{at(1)},0,0\n" for host in stepped)
    found = {check.name: check for check in judge(load_record(tmp_path)).checks}[builtin.STEPS_PRINTED]
    assert (found.status, found.observed, found.expected, found.why) == (status, 2 - len(stepped), "== 0", why)
    assert found.who is Party.PROGRAM


def test_what_prints_no_steps_is_not_asked_for_any(tmp_path: Path) -> None:
    checks = judge(run_of(tmp_path, {"h0": WELL, "h1": WELL})).checks
    assert builtin.STEPS_PRINTED not in {check.name for check in checks}


@pytest.mark.parametrize(
    ("ended", "why"), [(9.5, "over"), (9.499999999, "another program of its job had failed"), (9.6, "over")]
)
def test_a_program_that_ended_with_the_run_ended_with_it(tmp_path: Path, ended: float, why: str) -> None:
    record = run_of(tmp_path, {"h0": WELL, "h1": (at(ended), -9, 2)}, "over")
    assert next(end.why for end in judge(record).ends if end.name == "h1") == why
