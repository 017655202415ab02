"""Parts of a run: when each fault was on, and which steps and moments belong to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from testbed.checks.expect import Span, Window
from testbed.checks.record import Completion, HistoryLine, RunRecord

AFTERMATH_RTTS = 10
"""A fault's window ends this many base RTTs after the heal: until then packets of it are still being missed."""


class NoData(Exception):
    """The record holds nothing to compute a figure from; the text says what is lacking."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time, both ends included; `end` is infinite when a fault was never healed."""

    begin: float
    end: float

    def overlaps(self, other: Interval) -> bool:
        """True when they share at least a moment."""
        return self.begin <= other.end and other.begin <= self.end

    def holds(self, t_ns: float) -> bool:
        """True for a moment inside."""
        return self.begin <= t_ns <= self.end


@dataclass(frozen=True, slots=True)
class Outage:
    """One cycle of a fault, as it was done. `healed_ns` None: it never was.

    `sender`, `peer`: it was about packets from and to these hosts alone; empty: any.
    """

    fault: str
    cycle: int
    links: tuple[str, ...]
    invoked_ns: int
    injected_ns: int
    healed_ns: int | None
    sender: str = ""
    peer: str = ""

    def window(self, aftermath_ns: int) -> Interval:
        """From the first attempt until `aftermath_ns` after the heal."""
        return Interval(self.invoked_ns, inf if self.healed_ns is None else self.healed_ns + aftermath_ns)


@dataclass(frozen=True, slots=True)
class JobStep:
    """A step that every rank finished. It begins when the slowest rank ended the step before."""

    index: int
    begin_ns: int
    end_ns: int
    bytes: int
    bytes_wrong: int

    @property
    def duration_ns(self) -> int:
        """The step time."""
        return self.end_ns - self.begin_ns

    @property
    def interval(self) -> Interval:
        """The same as an interval."""
        return Interval(self.begin_ns, self.end_ns)


def outages(record: RunRecord) -> list[Outage]:
    """Every cycle of every fault that was injected, in order."""
    invoked: dict[tuple[str, int], int] = {}
    healed = _healed(record.history)
    found = []
    for line in record.history:
        key = (line.fault, line.cycle)
        if line.op == "inject" and line.type == "invoke":
            invoked.setdefault(key, line.t_ns)
        elif line.op == "inject" and line.type == "ok":
            start = invoked.get(key, line.t_ns)
            done = (start, line.t_ns, healed.get(key))
            found.append(Outage(line.fault, line.cycle, line.links, *done, line.sender, line.peer))
    return found


def _healed(history: Iterable[HistoryLine]) -> dict[tuple[str, int], int]:
    return {(line.fault, line.cycle): line.t_ns for line in history if line.op == "heal" and line.type == "ok"}


def job_steps(record: RunRecord) -> list[JobStep]:
    """The steps that every rank finished, without a gap, and without those of the warm-up."""
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


def aftermath_ns(record: RunRecord) -> int:
    """AFTERMATH_RTTS in ns; T stands in where the base RTT was not measured."""
    return AFTERMATH_RTTS * (record.base_rtt_ns or record.scenario.shape().rtt_ns)


def fault_intervals(record: RunRecord, fault: str = "") -> list[Interval]:
    """When a fault (or any, without a name) was on, merged and in order.

    Raises NoData for a named fault that was not injected.
    """
    after = aftermath_ns(record)
    found = [outage.window(after) for outage in outages(record) if fault in ("", outage.fault)]
    if fault and not found:
        raise NoData(f"fault {fault} was not injected")
    return merged(found)


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as intervals that do not touch."""
    result: list[Interval] = []
    for interval in sorted(intervals, key=lambda interval: interval.begin):
        if result and interval.begin <= result[-1].end:
            result[-1] = Interval(result[-1].begin, max(result[-1].end, interval.end))
        else:
            result.append(interval)
    return result


def steps_in(record: RunRecord, window: Window) -> list[JobStep]:
    """The finished steps of a window; without steps of a warm-up, `clean` leaves the first one out.

    Raises NoData when there are none.
    """
    inside = stretches(record, window)
    first = 1 if window.span is Span.CLEAN and not record.scenario.train.warm_up_count else 0
    steps = [step for step in job_steps(record)[first:] if inside(step.interval)]
    if not steps:
        raise NoData(f"no step was finished{in_words(window)}")
    return steps


def in_words(window: Window) -> str:
    """The window as the end of a sentence."""
    return " outside all faults" if window.span is Span.CLEAN else f" {window}".rstrip()


def window_intervals(record: RunRecord, window: Window) -> list[Interval]:
    """The time of a window that is not the whole run; of `clean`, the time that is not in it.

    Raises NoData for a fault that was not injected, and for times of a workload that never began.
    """
    if window.span is not Span.TIMES:
        return fault_intervals(record, window.fault)
    if record.start_ns is None:
        raise NoData("the workload did not begin")
    return [Interval(record.start_ns + window.begin_ns, record.start_ns + window.end_ns)]


def stretches(record: RunRecord, window: Window) -> Callable[[Interval], bool]:
    """The predicate "this stretch of time counts for the window": it overlaps a fault's, even by a moment, or none
    (`clean`), or lies wholly in the times that were written down. Raises NoData as `window_intervals`."""
    if window.span is Span.RUN:
        return lambda _: True
    intervals = window_intervals(record, window)
    if window.span is Span.TIMES:
        return lambda part: any(within.begin <= part.begin and part.end <= within.end for within in intervals)
    wanted = window.span is not Span.CLEAN
    return lambda part: any(part.overlaps(interval) for interval in intervals) is wanted


def moments(record: RunRecord, window: Window) -> Callable[[int], bool]:
    """The predicate "this moment belongs to the window". Raises NoData for a fault that was not injected."""
    if window.span is Span.RUN:
        return lambda t_ns: True
    intervals = window_intervals(record, window)
    wanted = window.span is not Span.CLEAN
    return lambda t_ns: any(interval.holds(t_ns) for interval in intervals) is wanted
