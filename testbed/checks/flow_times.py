"""Completion times of flows that arrive over time, and their slowdown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scope import flows_in
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, in_words, stretches
from mrc_testbed.testbed.expect import Scope, ScopeKind, Window
from mrc_testbed.topos.units import plural

MOST_BINS, LEAST_FLOWS = 10, 10


@computes("flow_time")
def flow_times(record: RunRecord, window: Window) -> Sequence[float]:
    """Nanoseconds from the begin of each flow, whether its QP was free or not, to its last acknowledgement; of flows
    that ended in the window."""
    return _column(record, window, "duration_ns")


@computes("slowdown")
def slowdowns(record: RunRecord, window: Window) -> Sequence[float]:
    """That over the completion time of the flow alone in the idle fabric."""
    return _column(record, window, "slowdown")


class SizeBin(NamedTuple):
    """Neighbours by size: the least and the greatest size, number of flows, and percentiles of their slowdown."""

    least: int
    most: int
    flows: int
    p50: float
    p95: float
    p99: float
    worst: float


def by_size(record: RunRecord) -> list[SizeBin]:
    """All flows that ended, in MOST_BINS groups of as many flows each, or fewer where a group would have less than
    LEAST_FLOWS; flows of one size are in one group."""
    rows = sorted(record.flow_times.columns("bytes", "slowdown"))
    found: list[SizeBin] = []
    each = max(-(-len(rows) // MOST_BINS), LEAST_FLOWS)
    begin = 0
    for place in range(1, len(rows) + 1):
        last = place == len(rows)
        if last or (place - begin >= each and rows[place][0] > rows[place - 1][0] and len(rows) - place >= LEAST_FLOWS):
            slowed = [slowdown for _, slowdown in rows[begin:place]]
            shown = (statistic(slowed, stat) for stat in ("p50", "p95", "p99", "max"))
            found.append(SizeBin(rows[begin][0], rows[place - 1][0], place - begin, *shown))
            begin = place
    return found


def _column(record: RunRecord, window: Window, name: str) -> Sequence[float]:
    inside, wanted = stretches(record, window), _wanted(record, window.scope)
    columns = record.flow_times.columns("flow", "number", "begin_ns", "end_ns", name)
    found = [
        value
        for flow, number, begin_ns, end_ns, value in columns
        if wanted(flow, number) and inside(Interval(begin_ns, end_ns))
    ]
    if not found:
        raise NoData(f"no flow ended{in_words(window)}")
    if stopped := [time for time in _stopped(record, window.scope) if inside(time)]:
        least = [time.end - time.begin if name == "duration_ns" else 0.0 for time in stopped]
        why = f"the testbed stopped {plural(len(stopped), 'flow')} that had begun"
        raise KnownBetween(why, [*found, *least], [*found, *(inf for _ in stopped)])
    return found


def _stopped(record: RunRecord, scope: Scope) -> Iterator[Interval]:
    """From begin to stop the times of flows that the testbed stopped."""
    wanted, start_ns = _wanted(record, scope), record.start_ns or 0
    ended = set(record.flow_times.columns("flow", "number"))
    for flow in record.scenario.flows.flows:
        end = record.ends[flow.name]
        for number, arrival in enumerate(flow.arrivals if flow.name in record.stopped else ()):
            begin_ns = start_ns + arrival.start_ns
            if begin_ns < end.t_ns and wanted(flow.name, number) and (flow.name, number) not in ended:
                yield Interval(begin_ns, end.t_ns)


def _wanted(record: RunRecord, scope: Scope) -> Callable[[str, int], bool]:
    """Whether a flow of a pair, by its number, belongs to a scope. A group may have some flows of a pair alone."""
    flows = {flow.name: flow for flow in flows_in(record, scope) if flow.arrivals}
    if scope.kind is not ScopeKind.GROUP:
        return lambda flow, _: flow in flows
    whole = {name for name, flow in flows.items() if flow.groups[0] == scope.name}
    return lambda flow, number: flow in whole or (flow in flows and scope.name in flows[flow].arrivals[number].groups)
