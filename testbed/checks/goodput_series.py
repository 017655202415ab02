"""Goodput over time relative to its clean median: how low it went by a fault, and when it was back. Pure.

The grain is a stretch of 100 ms for flows, a step for jobs of steps.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.endings import unfinished_ranks
from mrc_testbed.testbed.checks.ends import How
from mrc_testbed.testbed.checks.flows import LEAST_PACKETS, Grain, steady_rows
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.scope import about_flows, flows_in, scope_of
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.checks.steps import steps_in, steps_of
from mrc_testbed.testbed.checks.unmet import require_met
from mrc_testbed.testbed.checks.windows import (
    KnownBetween,
    NoData,
    Outage,
    aftermath_ns,
    nothing,
    outages,
    stretches,
    window_times,
    workload_ns,
)
from mrc_testbed.testbed.expect import EVERYBODY, Scope, Span, Window
from mrc_testbed.testbed.workloads.steady import settle_ns

BACK = 0.95
"""Share of the clean median below which goodput is low."""
MOST_LOW = 0.05
"""Share of the stretches or steps without a fault that may be below BACK: with more, a low one tells nothing."""
IN_A_ROW = 3
"""Number of consecutive good points; a single one may be chance."""


@dataclass(frozen=True, slots=True)
class GoodputPoint:
    """A time span and its goodput, as a share of the clean median."""

    time: Interval
    share: float


@dataclass(frozen=True, slots=True)
class Return:
    """How goodput came back after a moment.

    `after_ns` 0: it never fell below BACK, None: it was not back in the `known_ns` until the next fault or the end.
    `lowest`: the lowest share until it was back.
    """

    after_ns: float | None
    known_ns: float
    lowest: float

    @property
    def fell(self) -> bool:
        """There was a low point."""
        return self.after_ns != 0


class TooLate(NoData):
    """A fault began so shortly before the end of the workload that nothing can be known of it."""

    def __init__(self) -> None:
        super().__init__("the workload ended before anything could be seen of it")


@computes("goodput_back")
def times_back(record: RunRecord, window: Window) -> Sequence[float]:
    """Per occurrence of a fault the time from its injection until goodput was back, in ns; in a window after a heal the
    time from the window's begin.

    0 where it never fell. Raises KnownBetween if one was not back, NoData if nothing is known.
    """
    followed = followed_goodput(record, window.scope)
    returns = [worst_return(followed, span, until) for span, until in _watched(record, window)]
    back = [one.after_ns for one in returns if one.after_ns is not None]
    late = [one.known_ns for one in returns if one.after_ns is None]
    if late:
        reason = f"goodput did not return in the {max(late) / 1e9:.3g} s before the next fault or the end"
        raise KnownBetween(reason, (*back, *late), (*back, *(inf for _ in late)))
    return back


def _watched(record: RunRecord, window: Window) -> list[tuple[Interval, float]]:
    """In which time goodput is followed, and until when a fall counts."""
    if window.span is Span.AFTER:
        return [(part, part.end) for part in window_times(record, window)]
    after = aftermath_ns(record)
    watched = []
    for outage in require_met(record, window.fault):
        with suppress(TooLate):
            watched.append((since_injection(record, outage), outage.window(after).end))
    if not watched:
        raise TooLate
    return watched


def since_injection(record: RunRecord, outage: Outage) -> Interval:
    """In which time goodput tells of a fault: until the next injection. Faults that begin within AFTERMATH_RTTS of each
    other are followed together: before that nothing can be seen of the first, and then nobody can tell them apart.
    Raises TooLate for one that begins so shortly before the end."""
    after = aftermath_ns(record)
    found = undisturbed(record, outage.injected_ns, after)
    if found.end - found.begin < after:
        raise TooLate
    return found


def undisturbed(record: RunRecord, begin_ns: float, together_ns: float = 0) -> Interval:
    """From a moment (or the start of the workload, if later) until the first injection more than `together_ns` after
    it, or the end."""
    start, end = workload_ns(record)
    begin = max(begin_ns, start)
    later = (outage.invoked_ns for outage in outages(record) if outage.invoked_ns > begin + together_ns)
    return Interval(begin, min([end, *later]))


def usual_gap_ns(record: RunRecord, points: Sequence[GoodputPoint]) -> float:
    """How long goodput is unknown now and then: while the rates of flows settle, and for a point on each side."""
    grain = statistics.median(point.time.end - point.time.begin for point in points) if points else 0
    return settle_ns(record.scenario.shape()) + 2 * grain


def returned(
    points: Sequence[GoodputPoint], span: Interval, watched_until_ns: float, longest_gap_ns: float = inf
) -> Return:
    """When goodput was back after the beginning of `span`: at the first of three good points in a row (at its end: of
    those that there are) behind the last low one that began by `watched_until_ns`.

    Raises NoData without any point, and where it is unknown for more than `longest_gap_ns` what a longer fall would
    have shown.
    """
    seen = _seen(points, span)
    low = [n for n, point in enumerate(seen) if point.share < BACK and point.time.begin <= watched_until_ns]
    if not low:
        _refuse_gaps(seen, Interval(span.begin, min(watched_until_ns, span.end)), longest_gap_ns)
        usual = [point.share for point in seen if point.time.begin <= watched_until_ns]
        return Return(0.0, span.end - span.begin, min(usual, default=seen[0].share))
    for index in range(low[-1] + 1, len(seen)):
        if all(point.share >= BACK for point in seen[index : index + IN_A_ROW]):
            back_ns = seen[index].time.begin
            watched_ns = max(back_ns, min(watched_until_ns, span.end))
            _refuse_gaps(seen, Interval(seen[low[-1]].time.begin, watched_ns), longest_gap_ns)
            lowest = min(point.share for point in seen[:index])
            return Return(back_ns - span.begin, span.end - span.begin, lowest)
    known_ns = min(seen[-1].time.end, span.end) - span.begin
    return Return(None, known_ns, min(point.share for point in seen))


@dataclass(frozen=True, slots=True)
class FollowedGoodput:
    """Goodput over time of what ended at `ended_ns`; `usual_gap_ns`: how long it is unknown now and then."""

    points: Sequence[GoodputPoint]
    ended_ns: float
    usual_gap_ns: float


def followed_goodput(record: RunRecord, scope: Scope) -> list[FollowedGoodput]:
    """Of a scope. Steps of several jobs lie side by side, so each job is followed for itself. Raises NoData where it is
    unknown of one of them."""
    several = scope == EVERYBODY and len(record.scenario.jobs) > 1
    found = []
    for one in [scope_of(job.name) for job in record.scenario.jobs] if several else [scope]:
        points = goodput_series(record, Window(scope=one))
        found.append(FollowedGoodput(points, ended_ns(record, one), usual_gap_ns(record, points)))
    return found


def worst_return(followed: Iterable[FollowedGoodput], span: Interval, watched_until_ns: float) -> Return:
    """Of the job that was back last, or not at all, with the lowest goodput of any. Raises NoData as `returned`."""
    found = [returned(one.points, span, min(watched_until_ns, one.ended_ns), one.usual_gap_ns) for one in followed]
    last = max(found, key=lambda one: inf if one.after_ns is None else one.after_ns)
    return replace(last, lowest=min(one.lowest for one in found))


def _refuse_gaps(seen: Sequence[GoodputPoint], span: Interval, longest_gap_ns: float) -> None:
    """Raises NoData where no point tells of a part of `span`."""
    known_ns = span.begin
    for time in [*(point.time for point in seen), Interval(span.end, span.end)]:
        gap_ns = min(time.begin, span.end) - known_ns
        if gap_ns > longest_gap_ns:
            raise NoData(f"goodput is not known for {gap_ns / 1e9:.3g} s of that time: nothing clean to compare with")
        known_ns = max(known_ns, time.end)


def _seen(points: Sequence[GoodputPoint], span: Interval) -> list[GoodputPoint]:
    """The points that tell of a span. One in which the span ends counts when it was good all the same; a low one only
    where no whole point lies in the span and this one fills more of it than of what follows: else the next fault made
    it low. Raises NoData when there is none."""
    during = [point for point in points if span.begin < point.time.end and point.time.begin < span.end]
    whole = any(span.begin <= point.time.begin and point.time.end <= span.end for point in during)

    def tells(point: GoodputPoint) -> bool:
        inside = span.end - max(point.time.begin, span.begin)
        return point.time.end <= span.end or point.share >= BACK or (not whole and inside > point.time.end - span.end)

    return [point for point in during if tells(point)] or nothing(
        "no whole step or stretch of flows ended before the next fault or the end"
    )


def ended_ns(record: RunRecord, scope: Scope) -> float:
    """When the last step or message of a scope ended: there is no goodput later. Infinite if some did not end."""
    if about_flows(record, scope):
        names = {flow.name for flow in flows_in(record, scope)}
        if any(record.ends[name].how is not How.ITSELF for name in names):
            return inf
        return max((end for flow, end in record.received.columns("flow", "end_ns") if flow in names), default=inf)
    if unfinished_ranks(record, scope):
        return inf
    return max((step.end_ns for step in steps_of(record, scope)), default=inf)


def goodput_series(record: RunRecord, window: Window) -> list[GoodputPoint]:
    """All points of the workload, for the hosts and flows of the window's scope. Raises NoData without a clean base."""
    whole = Window(Span.RUN, scope=window.scope)
    return _of_flows(record, whole) if about_flows(record, window.scope) else _of_steps(record, whole)


def _of_steps(record: RunRecord, window: Window) -> list[GoodputPoint]:
    """Relative to the clean median of the same job; of several jobs in the order of time."""
    steps = steps_in(record, replace(window, span=Span.CLEAN))
    clean = gathered((step.job, step.duration_ns) for step in steps)
    medians = {job: statistics.median(durations) for job, durations in clean.items()}
    # Those after a fault may be low because it never got better.
    first_ns = min((outage.invoked_ns for outage in outages(record)), default=inf)
    usual = [step for step in steps if step.end_ns < first_ns]
    _refuse_uneven([medians[step.job] < BACK * step.duration_ns for step in usual], "steps before any fault")
    found = [
        GoodputPoint(step.interval, medians[step.job] / step.duration_ns if step.duration_ns else inf)
        for step in steps_of(record, window.scope)
        if step.job in medians
    ]
    found += _standing_still(record, window.scope, medians)
    return sorted(found, key=lambda point: point.time.begin)


def _standing_still(record: RunRecord, scope: Scope, medians: Mapping[str, float]) -> Iterator[GoodputPoint]:
    """Of each job that did not end, its last step, if it is too slow already: at most that share."""
    behind = set(unfinished_ranks(record, scope))
    for job in record.scenario.jobs:
        ends = [step.end_ns for step in steps_of(record, scope) if step.job == job.name]
        if not ends or job.name not in medians or behind.isdisjoint(job.host_names(record.scenario.shape())):
            continue
        since = Interval(max(ends), record.ends[job.name].t_ns)
        share = medians[job.name] / max(since.end - since.begin, 1)
        if share < BACK:
            yield GoodputPoint(since, share)


def _of_flows(record: RunRecord, window: Window) -> list[GoodputPoint]:
    """Relative to the median of clean stretches with the same active flows. Raises NoData where those are so uneven, or
    hold so little, that a low stretch tells nothing."""
    totals: dict[Interval, int] = {}
    going: dict[Interval, frozenset[str]] = {}
    for _, count, time, epoch in steady_rows(record, window):
        totals[time] = totals.get(time, 0) + count
        going[time] = epoch.flows
    inside = stretches(record, replace(window, span=Span.CLEAN)) if outages(record) else (lambda _: True)
    usual = gathered((going[time], total) for time, total in totals.items() if inside(time))
    medians = {flows: statistics.median(figures) for flows, figures in usual.items()}
    if not any(medians.values()):
        raise NoData("no goodput outside all faults to compare with")
    _require_even(record, usual, medians)
    known = sorted((time for time in totals if medians.get(going[time])), key=lambda time: time.begin)
    return [GoodputPoint(time, totals[time] / medians[going[time]]) for time in known]


def _require_even(
    record: RunRecord, usual: Mapping[frozenset[str], Sequence[int]], medians: Mapping[frozenset[str], float]
) -> None:
    """Raises NoData unless nearly all stretches without a fault are at least BACK of their median."""
    flows = {flow.name: flow for flow in record.scenario.flows.flows}
    for going, median in medians.items():
        grain = max((Grain.of(record, flows[name]) for name in going), key=lambda one: one.bytes)
        if 0 < median < LEAST_PACKETS * grain.bytes:
            held = f"{number(median / grain.bytes)} {grain.word}"
            raise NoData(f"a stretch of 100 ms without a fault holds {held}: too few to tell a fall")
    low = [total < BACK * medians[going] for going, totals in usual.items() for total in totals if medians[going]]
    _refuse_uneven(low, "stretches without a fault")


def _refuse_uneven(low: Sequence[bool], what: str) -> None:
    """Raises NoData where more than a few of the clean points are low: one more tells nothing of a fault."""
    if sum(low) > MOST_LOW * len(low) + 1:
        raise NoData(f"{sum(low) / len(low):.0%} of the {what} are below 95 % of their median too")
