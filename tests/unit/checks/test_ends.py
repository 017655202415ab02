"""How each job and flow ended: by itself, by a fault, or stopped by the testbed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import builtin
from mrc_testbed.testbed.checks.ends import How
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.report.facts import ends_words
from tests.unit.checks.test_folder import RunFolder, at
from tests.unit.checks.test_several_jobs import jobs_folder

PASS, FAIL, OPEN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE


def one_dies(**more: Any) -> RunFolder:
    """A QP of `job-2` (h3, h1) fails in its second step; the quick job (h0, h2) comes to its end at 8.3 s."""
    folder = jobs_folder(**more)
    folder.stop_at_limit()
    folder.history[-1]["error"] = "h3: QP 3>1/allreduce/0 to h1 failed: retries"
    folder.completions = [row for row in folder.completions if row[0] in ("h0", "h2") or row[1] == 0]
    error = {"host": "h3", "peer": "h1", "qp": "3>1/allreduce/0", "reason": "retries"}
    folder.events.append({"event": "qp_error", "t_ns": at(3), **error})
    return folder


def stopped(**more: Any) -> RunFolder:
    """The quick job is done; the run was ended in the second step of the other one."""
    folder = one_dies(**more)
    folder.events.pop()
    folder.history[-1]["error"] = "not finished within the time limit"
    return folder


def test_a_job_dies_and_the_other_one_comes_to_its_end(tmp_path: Path) -> None:
    record = load_record(one_dies().write(tmp_path))
    assert {name: (end.how, end.t_ns) for name, end in record.ends.items()} == {
        "quick": (How.ITSELF, at(8.3)),
        "job-2": (How.FAULT, at(3)),
    }
    assert record.end_ns == at(8.3), "windows reach to the end of the job that lives"
    assert ends_words(record) == "job-2 died at 3 s: QP h3->h1: retries; survived: quick"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("job_died", 1),
        ("job_died of quick", 0),
        ("job_died of job-2", 1),
        ("job_died of h1", 1),
        ("job_died of h2", 0),
        ("died_at of job-2", 3),
        ("unfinished", 2),
        ("unfinished of quick", 0),
        ("unfinished of job-2", 2),
        ("unfinished of h3", 1),
        ("unfinished of each host", 1),
        ("steps_done of quick", 8),
        ("steps_done of job-2", 1),
    ],
)
def test_figures_of_a_death_are_of_the_job_that_died(tmp_path: Path, text: str, value: float) -> None:
    assert ask(load_record(one_dies().write(tmp_path)), text).value == value


@pytest.mark.parametrize(
    ("expect", "status"),
    [
        (["job_died of job-2 == 1", "unfinished of quick == 0"], PASS),
        (["unfinished of job-2 == 2"], PASS),
        (["died_at of job-2 <= 4s"], PASS),
        (["job_died == 1"], PASS),
        (["unfinished >= 3"], FAIL),
        (["unfinished of quick == 0"], FAIL),  # nobody said that job-2 may die
        (["job_died of quick == 1"], FAIL),
        (["job_died of each job == 1"], FAIL),
    ],
)
def test_the_death_of_one_job_can_be_asked_for(tmp_path: Path, expect: list[str], status: Status) -> None:
    verdict = one_dies(expect=expect).judge(tmp_path)
    assert verdict.status is status, verdict.reason


def test_a_death_that_is_asked_for_excuses_no_other_job(tmp_path: Path) -> None:
    """The quick job lost the row of its last step."""
    folder = one_dies(expect=["job_died of job-2 == 1"])
    folder.completions = [row for row in folder.completions if row[:2] != ["h2", 7]]
    checks = {check.name: check for check in folder.judge(tmp_path).checks}
    assert checks[builtin.FINISHED].status is OPEN


@pytest.mark.parametrize(
    ("expect", "status"),
    [
        ([], OPEN),
        (["unfinished == 0"], OPEN),
        (["unfinished >= 1"], OPEN),
        (["unfinished >= 3"], FAIL),
        (["job_died == 0"], OPEN),
        (["steps_done of job-2 <= 2"], OPEN),
        (["steps_done of job-2 >= 1"], PASS),
        (["steps_done of quick == 8"], PASS),
    ],
)
def test_nothing_that_the_testbed_stopped_is_known_to_be_unfinished(
    tmp_path: Path, expect: list[str], status: Status
) -> None:
    verdict = stopped(expect=expect).judge(tmp_path)
    found = next((check for check in verdict.checks if check.name in expect), verdict)
    assert found.status is status
    assert verdict.status is (FAIL if status is FAIL else OPEN)


@pytest.mark.parametrize(("expect", "status"), [([], FAIL), (["unfinished == 0"], FAIL), (["job_died == 0"], FAIL)])
def test_a_limit_that_the_scenario_writes_is_what_it_asks_for(
    tmp_path: Path, expect: list[str], status: Status
) -> None:
    folder = stopped(expect=expect)
    folder.scenario = f"time_limit: 60s\n{folder.scenario}"
    assert folder.judge(tmp_path).status is status


def test_what_was_interrupted_is_no_more_unfinished_at_a_limit(tmp_path: Path) -> None:
    folder = stopped()
    folder.scenario = f"time_limit: 60s\n{folder.scenario}"
    folder.history[-1] = {"t_ns": at(9.5), "op": "interrupt", "type": "fail", "error": "interrupted by SIGINT"}
    record = load_record(folder.write(tmp_path))
    assert record.ends["job-2"].unfinished is None
    assert ends_words(record) == "survived: quick; stopped by the testbed: job-2 (interrupted by SIGINT)"


def test_an_error_of_a_qp_whose_job_is_not_known_ends_all_that_goes_on(tmp_path: Path) -> None:
    folder = one_dies()
    folder.events[-1] |= {"qp": "own", "host": "h9", "peer": "h8"}
    ends = load_record(folder.write(tmp_path)).ends
    assert (ends["quick"].how, ends["job-2"].how) == (How.ITSELF, How.FAULT)


def test_a_qp_that_fails_after_its_job_was_done_killed_nothing(tmp_path: Path) -> None:
    folder = one_dies()
    error = {"host": "h0", "peer": "h2", "qp": "0>2/allreduce/0", "reason": "all ports down"}
    folder.events.append({"event": "qp_error", "t_ns": at(8.4), **error})
    assert load_record(folder.write(tmp_path)).ends["quick"].how is How.ITSELF
