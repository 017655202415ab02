"""The steps of a training job: of all ranks together, and of each rank. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.checks.computation import computes
from testbed.checks.derived import derived
from testbed.checks.record import RunRecord
from testbed.checks.scope import belongs
from testbed.checks.windows import Interval, NoData, in_words, nothing, stretches
from testbed.expect import ScopeKind, Span, Window
from testbed.rundir.tables import Completion


@dataclass(frozen=True, slots=True)
class JobStep:
    """A finished step. Of all ranks: begins when the slowest rank ended the step before; of one rank: at its own
    begin."""

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
def job_steps(record: RunRecord) -> list[JobStep]:
    """The steps that every rank finished, without gaps and without warm-up."""
    ranks = set(record.scenario.ranks)
    by_step: dict[int, dict[str, Completion]] = {}
    for done in record.completions:
        by_step.setdefault(done.step, {})[done.host] = done
    steps: list[JobStep] = []
    while ranks <= by_step.get(len(steps), {}).keys():
        done_by = [by_step[len(steps)][host] for host in sorted(ranks)]
        begin = steps[-1].end_ns if steps else min(done.begin_ns for done in done_by)
        end = max(done.end_ns for done in done_by)
        moved, wrong = sum(done.bytes for done in done_by), sum(done.bytes_wrong for done in done_by)
        steps.append(JobStep(len(steps), begin, end, moved, wrong))
    return steps[record.scenario.train.warm_up_count :]


@derived
def rank_steps(record: RunRecord) -> dict[str, list[JobStep]]:
    """The steps that each host finished, with its own begin and end times."""
    found: dict[str, list[JobStep]] = {host: [] for host in record.scenario.ranks}
    for done in record.completions:
        step = JobStep(done.step, done.begin_ns, done.end_ns, done.bytes, done.bytes_wrong)
        if done.step >= record.scenario.train.warm_up_count:
            found.setdefault(done.host, []).append(step)
    return found


def steps_in(record: RunRecord, window: Window) -> list[JobStep]:
    """The finished steps of a window, of one host if the window names one.

    In a job without warm-up steps, `clean` leaves out the first one. Raises NoData if there are none.
    """
    inside = stretches(record, window)
    scope = window.scope
    steps = rank_steps(record).get(scope.name, []) if scope.kind is ScopeKind.HOST else job_steps(record)
    first = _first(record, window)
    found = [step for step in steps if step.index >= first and inside(step.interval)]
    if not found:
        raise NoData(f"no step was finished{in_words(window)}")
    return found


def _first(record: RunRecord, window: Window) -> int:
    """The first step that may belong to a window."""
    return record.scenario.train.warm_up_count or (1 if window.span is Span.CLEAN else 0)


@computes("step_time")
def step_durations(record: RunRecord, window: Window) -> list[int]:
    """Durations of the steps of a window, in ns. Raises NoData if there are none."""
    return [step.duration_ns for step in steps_in(record, window)]


@computes("wait_time")
def wait_times(record: RunRecord, window: Window) -> list[int]:
    """How long each rank waited in each of its steps in the window, in ns: for all its peers, or for one.

    Of a pair h3->h0: how long h3 waited for h0. Raises NoData without records.
    """
    mine = belongs(record, window.scope)
    inside, first = stretches(record, window), _first(record, window)
    waited: dict[tuple[str, int], int] = {}
    for wait in record.waits:
        if mine(wait.host, wait.peer) and wait.step >= first:
            key = wait.host, wait.step
            waited[key] = waited.get(key, 0) + wait.wait_ns
    ended = {(host, step.index): step.interval for host, steps in rank_steps(record).items() for step in steps}
    found = [total for key, total in waited.items() if key in ended and inside(ended[key])]
    return found or nothing(f"no waiting was recorded{in_words(window)}")
