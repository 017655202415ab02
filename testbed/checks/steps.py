"""The steps of the jobs of a run: of all ranks of a job together, and of each rank. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import inf

from mrc_testbed.testbed.checks.buffered import require_lines_in_time
from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scope import belongs, ends_in, job_by_host
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, in_words, nothing, stretches
from mrc_testbed.testbed.expect import Scope, ScopeKind, Span, Window
from mrc_testbed.testbed.rundir.tables import Completion
from mrc_testbed.testbed.scenario.model.jobs import NamedJob

STOPPED_STEP = "the testbed stopped a job in a step"


@dataclass(frozen=True, slots=True)
class JobStep:
    """A finished step of a job. Of all its ranks: begins when the slowest rank ended the step before, or when the first
    one begins this step, if that is later; of one rank: at its own begin."""

    job: str
    index: int
    begin_ns: int
    end_ns: int
    bytes: int
    bytes_wrong: int

    @property
    def duration_ns(self) -> int:
        """From the first rank's begin to the last rank's end."""
        return self.end_ns - self.begin_ns

    @property
    def interval(self) -> Interval:
        """The time span of the step."""
        return Interval(self.begin_ns, self.end_ns)


@derived
def steps_by_job(record: RunRecord) -> dict[str, list[JobStep]]:
    """By name of each job its steps that every rank finished, without gaps and without warm-up."""
    return {job.name: _steps_of(record, job) for job in record.scenario.jobs}


def _steps_of(record: RunRecord, job: NamedJob) -> list[JobStep]:
    steps: list[JobStep] = []
    for done_by in finished_by_all(record, job):
        first = min(done.begin_ns for done in done_by)
        begin = max(steps[-1].end_ns, first) if steps else first
        end = max(done.end_ns for done in done_by)
        moved, wrong = sum(done.bytes for done in done_by), sum(done.bytes_wrong for done in done_by)
        steps.append(JobStep(job.name, len(steps), begin, end, moved, wrong))
    return steps[job.entry.warm_up_count :]


def finished_by_all(record: RunRecord, job: NamedJob) -> Iterator[list[Completion]]:
    """What the ranks of a job did in each step that all of them finished: from step 0, of the warm-up, without gaps."""
    ranks = set(job.host_names(record.scenario.shape()))
    for step in count():
        by_rank = _by_step(record).get(step, {})
        if not ranks <= by_rank.keys():
            return
        yield [done for host, done in by_rank.items() if host in ranks]


@derived
def _by_step(record: RunRecord) -> dict[int, dict[str, Completion]]:
    found: dict[int, dict[str, Completion]] = {}
    for done in record.completions:
        found.setdefault(done.step, {})[done.host] = done
    return found


def last_to_end(record: RunRecord, step: JobStep) -> Completion:
    """What the rank did that ended a step of its job last."""
    return ranked_by_end(record, step)[-1]


def ranked_by_end(record: RunRecord, step: JobStep) -> list[Completion]:
    """What the ranks of a job did in a step, the last to end at the end."""
    job_of = job_by_host(record)
    done = (done for host, done in _by_step(record)[step.index].items() if job_of[host].name == step.job)
    return sorted(done, key=lambda done: done.end_ns)


def job_steps(record: RunRecord) -> list[JobStep]:
    """These steps of all jobs, one job after the other."""
    return [step for steps in steps_by_job(record).values() for step in steps]


@derived
def rank_steps(record: RunRecord) -> dict[str, list[JobStep]]:
    """The steps that each host finished, with its own begin and end times, without warm-up."""
    job_of = job_by_host(record)
    found: dict[str, list[JobStep]] = {host: [] for host in job_of}
    for done in record.completions:
        job = job_of.get(done.host)
        if job and done.step >= job.entry.warm_up_count:
            step = JobStep(job.name, done.step, done.begin_ns, done.end_ns, done.bytes, done.bytes_wrong)
            found[done.host].append(step)
    return found


def steps_of(record: RunRecord, scope: Scope) -> list[JobStep]:
    """The finished steps of a scope, without warm-up: of one host, of one job, or of all jobs."""
    if scope.kind is ScopeKind.HOST:
        return rank_steps(record).get(scope.name, [])
    if scope.kind is ScopeKind.GROUP:
        return steps_by_job(record).get(scope.name, [])
    return job_steps(record)


def steps_in(record: RunRecord, window: Window) -> list[JobStep]:
    """The finished steps of a window and its scope.

    In a job without warm-up steps, `clean` leaves out the first one. Raises NoData if there are none, or if their times
    are those of a buffer.
    """
    inside, counts = stretches(record, window), _counts_from(record, window)
    found = [
        step for step in steps_of(record, window.scope) if step.index >= counts[step.job] and inside(step.interval)
    ]
    if not found:
        raise NoData(f"no step was finished{in_words(window)}")
    require_lines_in_time(record, {step.job for step in found})
    return found


def _counts_from(record: RunRecord, window: Window) -> dict[str, int]:
    """By job the first step that may belong to a window."""
    least = 1 if window.span is Span.CLEAN else 0
    return {job.name: job.entry.warm_up_count or least for job in record.scenario.jobs}


@computes("step_time")
def step_durations(record: RunRecord, window: Window) -> list[int]:
    """Durations of the steps of a window, in ns. Raises KnownBetween where the testbed stopped one, NoData if there are
    none."""
    found = [step.duration_ns for step in steps_in(record, window)]
    if stopped := stopped_steps(record, window):
        raise KnownBetween(STOPPED_STEP, [*found, *stopped], [*found, *(inf for _ in stopped)])
    return found


def stopped_steps(record: RunRecord, window: Window) -> list[int]:
    """How long the steps of a window had lasted in which the testbed stopped their job, in ns."""
    inside, stopped = stretches(record, window), []
    for end in (end for end in ends_in(record, window.scope) if end.name in record.stopped):
        job, done = record.scenario.job.job_named(end.name), steps_of(record, window.scope)
        ends_ns = [step.end_ns for step in done if step.job == end.name]
        if job and ends_ns and len(ends_ns) != job.entry.step_count and inside(Interval(ends_ns[-1], end.t_ns)):
            stopped.append(end.t_ns - ends_ns[-1])
    return stopped


@computes("wait_time")
def wait_times(record: RunRecord, window: Window) -> list[int]:
    """How long each rank waited in each of its steps in the window, in ns: for all its peers, or for one.

    Of a pair h3->h0: how long h3 waited for h0. Raises NoData without records.
    """
    mine = belongs(record, window.scope)
    inside, counts = stretches(record, window), _counts_from(record, window)
    ended = {
        (host, step.index): step.interval
        for host, steps in rank_steps(record).items()
        for step in steps
        if step.index >= counts[step.job]
    }
    mine_too = {wait.host for wait in record.waits if mine(wait.host, wait.peer)}
    waited = {key: 0 for key in ended if key[0] in mine_too}  # a step without a row is one without waiting
    for wait in record.waits:
        key = wait.host, wait.step
        if key in waited and mine(wait.host, wait.peer):
            waited[key] += wait.wait_ns
    found = [total for key, total in waited.items() if inside(ended[key])]
    return found or nothing(f"no waiting was recorded{in_words(window)}")
