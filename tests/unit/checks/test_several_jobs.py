"""Several jobs of steps in one scenario: their names and ranks, and their figures in hand-made run folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.builtin import FINISHED
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.wire_time import wire_times
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.pages.report.clock import clock_of
from mrc_testbed.testbed.pages.report.steps import step_charts, worst_words
from mrc_testbed.testbed.pages.report.story import story
from mrc_testbed.testbed.report.frames.run import Run
from mrc_testbed.testbed.report.summary import summary_text
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.tables import Wait
from mrc_testbed.testbed.runner.watch import watch_for
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.plan import build_plan
from tests.unit.checks.test_folder import SCENARIO, RunFolder, at
from tests.unit.runner.test_watch import Told

TRAIN = "- train: {steps: 8, compute: 100ms, allreduce: 2MiB}"
TWO = """\
- train: {hosts: [h0, h2], steps: 8, compute: 100ms, allreduce: 2MiB, name: quick}
  - train: {hosts: [h3, h1], steps: 4, compute: 100ms, allreduce: 2MiB}
"""
JOBS = SCENARIO.replace(TRAIN, TWO.rstrip())
HEAD = "name: two\nfabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}\nworkload:\n"


def jobs_folder(**more: object) -> RunFolder:
    """The quick job's steps are those of a `RunFolder`; the other one's take twice as long."""
    folder = RunFolder(scenario=JOBS, **more)  # type: ignore[arg-type]
    folder.completions = [row for row in folder.completions if row[0] in ("h0", "h2")]
    for step in range(4):
        for host in ("h3", "h1"):
            folder.completions.append([host, step, at(2 * step), at(2 * step + 2), 1 << 19, int(step == 3)])
    return folder


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return load_record(jobs_folder().write(tmp_path))


def test_a_job_has_its_own_ranks_and_data_and_no_qp_to_another() -> None:
    scenario = load_scenario_text(HEAD + "  " + TWO + "  - write: {from: h0, to: h3, for: 4s}\n")
    assert [job.name for job in scenario.jobs] == ["quick", "job-2"]
    assert scenario.host_names == scenario.ranks == ("h0", "h2", "h3", "h1")
    job = scenario.job.plan_job(build_plan(scenario.shape()))
    assert {qp.id.partition("/")[0] for qp in job.qps} == {"0>2", "2>0", "3>1", "1>3", "h0->h3"}
    assert [job.rank_of(host) for host in (0, 2, 3, 1)] == [0, 1, 2, 3]
    # What a rank checks is the data of the ranks of its own job, by their numbers in the whole workload.
    assert _checked(job.programs[2][0]) == {0, 1}
    assert _checked(job.programs[1][0]) == {2, 3}
    assert scenario.estimate_ns == scenario.jobs[0].steps(scenario.shape()).clean_ns(scenario.shape())


def _checked(operations: object) -> set[int]:
    """The ranks in all `check` operations."""
    if not isinstance(operations, list):
        return set()
    own = set(operations[-1]) if operations[:1] == ["check"] else set()
    return own.union(*map(_checked, operations)) if operations[:1] != ["check"] else own


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ("- allreduce: {hosts: [h0, h1], size: 1MiB, iterations: 3}\n  - train: {hosts: [h2, h1], steps: 1, "
         "compute: 1s, allreduce: 1MiB}", "s.yaml:5:25: workload.1.train.hosts.1: h1 is already in the job of work"),
        ("- allreduce: {hosts: [h0, h1], size: 1MiB, iterations: 3, name: a}\n  - sendrecv: {hosts: [h2, h3], "
         "size: 1MiB, iterations: 3, name: a}", "workload.1.sendrecv.name: duplicate name 'a'; workload.0 has it"),
        ("- allreduce: {hosts: [h0, h1], size: 1MiB, iterations: 3, name: job-2}\n  - sendrecv: {hosts: [h2, h3], "
         "size: 1MiB, iterations: 3}", "workload.1.sendrecv: duplicate name 'job-2'; workload.0 has it"),
        ("- allreduce: {size: 1MiB, iterations: 3, name: bulk}\n  - write: {from: h0, to: h1, for: 4s, name: bulk}",
         "workload.0.allreduce.name: 'bulk' is also the name of flows"),
        ("- allreduce: {size: 1MiB, iterations: 3, name: clean}", "workload.0.allreduce.name: 'clean' is reserved"),
        ("- allreduce: {size: 1MiB, iterations: 3, name: h1}", "workload.0.allreduce.name: 'h1' is reserved"),
    ],
)  # fmt: skip
def test_a_mistake_in_several_jobs_is_told(entries: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(f"{HEAD}  {entries}\n", "s.yaml")
    assert any(says in str(problem) for problem in caught.value.problems), caught.value


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        ("step_time.p100 of slow <= 2s", "there is no job named 'slow'; there are quick, job-2"),
        ("step_time.p100 of job-3 <= 2s", "there is no job named 'job-3'; did you mean 'job-2'?"),
        ("goodput of job-3 >= 1 line", "there is no job named 'job-3'; did you mean 'job-2'?"),
        ("packets_lost of quick == 0", "packets_lost is not known of a job of steps; name a host or a pair"),
    ],
)
def test_a_wrong_name_of_a_job_is_told(expect: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=r"s\.yaml:7") as caught:
        load_scenario_text(f"{HEAD}  {TWO}expect:\n  - {expect}\n", "s.yaml")
    assert says in str(caught.value)


def test_flows_alone_are_no_job() -> None:
    with pytest.raises(ScenarioError, match="this workload has no job of steps"):
        load_scenario_text(HEAD + "  - write: {from: h0, to: h1, for: 4s}\nexpect: [goodput of each job >= 1 line]\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps_done of quick", 8),
        ("steps_done of job-2", 4),
        ("steps_done of each job", 8),
        ("steps_done", 12),
        ("step_time.max of job-2", 2.0),
        ("step_time.max of quick", 1.2),
        ("step_time.p100", 2.0),
        ("step_time.min of h1", 2.0),
        ("goodput of job-2", (1 << 20) / 2),
        ("goodput of quick", 8 * (2 << 20) / 8.302),
        # By the time in which any of them lasted; the quick job's 8.302 s hold the other one's.
        ("goodput", (8 * (2 << 20) + 4 * (1 << 20)) / 8.302),
        ("bytes_wrong of job-2", 2),
        ("bytes_wrong of quick", 0),
        ("bytes_wrong", 2),
        ("unfinished", 0),
        ("wait_time.max of job-2", 0.3),
        ("wait_time.max of quick", 0.2),
    ],
)
def test_figures_are_of_a_job_or_of_all(tmp_path: Path, text: str, value: float) -> None:
    folder = jobs_folder().write(tmp_path)
    rows = [Wait("h1", 2, "h3", 3 * 10**8), Wait("h2", 2, "h0", 2 * 10**8)]
    (folder / "waits.csv").write_text(
        "host,step,peer,wait_ns\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    assert ask(load_record(folder), text).value == pytest.approx(value)


def test_goodput_of_several_jobs_is_back_when_that_of_each_is(tmp_path: Path) -> None:
    """A good step of one job while the low one of the other goes on had told a return before the fault."""
    folder = jobs_folder(durations=[1.0] * 8)
    folder.completions = [row for row in folder.completions if row[0] in ("h0", "h2")]
    for step, (begin, end) in enumerate([(0, 1), (1, 2), (2, 3), (3, 8)]):
        folder.completions += [[host, step, at(begin), at(end), 1 << 19, 0] for host in ("h3", "h1")]
    record = load_record(folder.write(tmp_path))
    assert ask(record, "goodput_back.p100 of quick during cut").value == 0
    for scope in ("", "of job-2 "):
        assert "did not return in the 4.5 s" in str(ask(record, f"goodput_back.p100 {scope}during cut"))


@pytest.mark.parametrize("window", ["during cut", "clean"])
def test_goodput_of_several_jobs_in_a_part_of_the_run_is_the_sum_of_each(tmp_path: Path, window: str) -> None:
    """The steps of one are four times as long: their time held too few steps of the other, and a fault that nothing
    felt seemed to cost a seventh."""
    folder = jobs_folder(durations=[1.0] * 8)
    folder.completions = [row for row in folder.completions if row[0] in ("h0", "h2")]
    for step in range(3):
        folder.completions += [[host, step, at(4 * step), at(4 * step + 4), 1 << 21, 0] for host in ("h3", "h1")]
    record = load_record(folder.write(tmp_path))
    each = [ask(record, f"goodput of {job} {window}").value for job in ("quick", "job-2")]
    assert ask(record, f"goodput {window}").value == pytest.approx(sum(one or 0 for one in each))


def test_goodput_of_several_jobs_is_unknown_where_that_of_one_is(tmp_path: Path) -> None:
    """A job without a clean step had been left out."""
    folder = jobs_folder()
    folder.completions = [row for row in folder.completions if row[0] in ("h0", "h2")]
    for step, (begin, end) in enumerate([(3.6, 4), (4, 4.2), (4.2, 4.4), (4.4, 4.6)]):
        folder.completions += [[host, step, at(begin), at(end), 1 << 19, 0] for host in ("h3", "h1")]
    record = load_record(folder.write(tmp_path))
    assert ask(record, "goodput_back.p100 of quick during cut").value != 0
    for scope in ("", "of job-2 "):
        assert ask(record, f"goodput_back.p100 {scope}during cut").value is None


def test_goodput_of_a_job_is_measured_by_its_own_clean_steps(record: RunRecord) -> None:
    """A step of 2 s is usual for one and would be a fall for the other."""
    assert ask(record, "goodput_back.p100 of job-2 during cut").value == 0
    assert ask(record, "goodput_back.p100 of quick during cut").value != 0


def test_every_rank_must_finish_the_steps_of_its_job(tmp_path: Path) -> None:
    folder = jobs_folder(expect=["unfinished of each job == 0"])
    folder.completions = [row for row in folder.completions if row[:2] != ["h1", 3]]
    record = load_record(folder.write(tmp_path))
    assert ask(record, "unfinished of job-2").value == 1
    assert ask(record, "unfinished of quick").value == 0
    checks = {check.name: check for check in judge(record).checks}
    assert checks["unfinished of each job == 0"].status is Status.FAIL
    assert checks["unfinished of each job == 0"].worst == "job-2"
    folder.expect = []
    checks = {check.name: check for check in folder.judge(tmp_path).checks}
    assert (checks[FINISHED].observed, checks[FINISHED].expected) == (3, "== 4")
    assert "1 of 4 ranks did not; h1 ended after 3" in checks[FINISHED].why


def test_a_person_reads_of_each_job(record: RunRecord) -> None:
    verdict = judge(record)
    summary = summary_text(verdict, record)
    assert "quick 8 steps, P100 1.2 s, clean median 1 s, job-2 4 steps, P100 2 s" in summary.replace("\n", " ")
    assert "step time of quick" in summary
    assert "step time of job-2" in summary
    told = story(verdict, record)
    assert "8 steps by 2 hosts and 4 steps by 2 hosts" in told["asked"]
    assert "all 4 steps of job-2 were finished" in told["happened"]
    clock = clock_of(record)
    assert clock
    assert [(chart["job"], len(chart["t"])) for chart in step_charts(record, clock)] == [("quick", 8), ("job-2", 4)]
    assert "of job-2 was the slowest: 2 s" in " ".join(worst_words(record))


def test_a_frame_of_steps_names_the_job(tmp_path: Path) -> None:
    steps = Run(jobs_folder().write(tmp_path)).steps
    assert list(steps["job"]) == ["quick"] * 8 + ["job-2"] * 4
    assert set(steps[steps["job"] == "quick"]["last_host"]) == {"h0"}


def test_the_wire_time_of_a_step_is_that_of_its_job(record: RunRecord) -> None:
    assert [one.what for one in wire_times(record)][7:9] == ["step 7 of quick", "step 0 of job-2"]


def test_steps_are_watched_by_job(tmp_path: Path) -> None:
    told = Told()
    watch = watch_for(load_scenario_text(HEAD + "  " + TWO), Recorder(tmp_path), told)
    watch.start(0)
    for host in ("h0", "h2", "h3"):
        step = {"event": "step", "step": 0, "begin_ns": 0, "end_ns": 10**9, "bytes": 1, "bytes_wrong": 0, "waits": {}}
        watch.take(host, step)
    assert told.texts == ["quick step 1/8, last 1.00 s, worst 1.00 s"]
    stuck = watch.stuck(["h0", "h2", "h3", "h1"])
    assert stuck == "h0, h2 stuck in step 1 of quick; h1 stuck in step 0 of job-2"
