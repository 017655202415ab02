"""Outage as every transport has it: how long QPs delivered nothing, and which jobs and flows died of one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.counting import final_counters
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.intervals import Interval, TimeSet
from mrc_testbed.testbed.checks.left_behind import all_stalls, stall_span, stopped_in
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.scope import belongs, ends_in, hosts_of
from mrc_testbed.testbed.checks.windows import KnownBetween, NoData, NoPart, stretches, window_times, workload_ns
from mrc_testbed.testbed.evidence.events import Notice, Stall
from mrc_testbed.testbed.expect import Scope, Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension

WHOLE_STALLS = (Span.RUN, Span.CLEAN, Span.FAULT, Span.FAULTS)
"""Windows in which a stall counts whole or not at all."""


@computes("stall")
def longest_stalls(record: RunRecord, window: Window) -> Sequence[float]:
    """The longest stall of each QP that sends data, in ns; 0 for one without a stall.

    A stall belongs to a window around faults if it overlaps one, and then counts whole: what a fault causes may outlast
    it. In windows of times the part inside counts. Raises KnownBetween where the testbed stopped a QP in its stall.
    """
    length, mine = _length_in(record, window), belongs(record, window.scope)
    longest = {key: 0.0 for key in _senders(record) if mine(key[0], key[1])}
    stopped: dict[tuple[str, str, str], str] = {}
    for stall in stalls(record):
        key, time = (stall.host, stall.peer, stall.qp), stall_span(record, stall)
        if mine(stall.host, stall.peer):
            longest[key] = max(longest.get(key, 0.0), length(time))
            to_its_end = window.span in WHOLE_STALLS or window_times(record, window).holds(time.end)
            if to_its_end and length(time) and (why := stopped_in(record, stall)):
                stopped[key] = why
    if stopped:
        (host, peer, _), why = next(iter(stopped.items()))
        most = [inf if key in stopped else ns for key, ns in longest.items()]
        raise KnownBetween(f"the testbed stopped {host}->{peer} in a stall ({why})", list(longest.values()), most)
    if not longest:
        silent = [host for host in hosts_of(record, window.scope) if host not in record.qps]
        raise NoData(f"{silent[0]} did not count packets by QP") if silent else NoPart("no QP sent any data")
    return list(longest.values())


def _length_in(record: RunRecord, window: Window) -> Callable[[Interval], float]:
    times = window_times(record, window)
    if window.span in WHOLE_STALLS:
        inside = stretches(record, window)
        return lambda stall: stall.end - stall.begin if inside(stall) else 0.0
    return lambda stall: max((part.end - part.begin for part in times & TimeSet([stall])), default=0.0)


@derived
def _senders(record: RunRecord) -> list[tuple[str, str, str]]:
    """Host, peer and name of each end of a QP that sends data."""
    rows = ((host, name, qp) for host, qps in record.qps.items() for name, qp in qps.items())
    return [(host, qp.peer, name) for host, name, qp in rows if qp.sent]


def stalls(record: RunRecord) -> list[Stall]:
    """All stalls in order of time, those that never ended too. Raises NoData if nobody watched for them."""
    if not record.stalls and all(shot.stalled is None for shot in record.snapshots.last().values()):
        raise NoData("the endpoints did not watch for stalls")
    return all_stalls(record)


@computes("job_died")
def job_died(record: RunRecord, window: Window) -> float:
    """1 if a QP went to ERROR before its job or flow was done. Raises KnownBetween where the testbed stopped one that
    lived, NoData when the workload never began."""
    workload_ns(record)
    if _deaths(record, window.scope):
        return 1.0
    if not record.workload_done:
        final_counters(record, window.scope)
    if stopped := [end.why for end in ends_in(record, window.scope) if end.unfinished is None]:
        raise KnownBetween(f"the testbed stopped what still lived ({stopped[0]})", [0], [1])
    return 0.0


@computes("died_at")
def died_at(record: RunRecord, window: Window) -> float:
    """When that was, in ns from the start of the workload. Raises NoPart if nothing died."""
    begin, _ = workload_ns(record)
    died = _deaths(record, window.scope)
    if not died:
        raise NoPart("the job did not die")
    return max(0, min(seen.t_ns for seen in died) - begin)


def _deaths(record: RunRecord, scope: Scope) -> list[Notice]:
    return [end.error for end in ends_in(record, scope) if end.error] if record.death else []


def death_words(record: RunRecord) -> str:
    """`job died at 3.79 s: QP h0->h1: retry exceeded`, of several with a name; empty if none did."""
    if record.death is None:
        return ""
    died = sorted((end for end in record.ends.values() if end.error), key=lambda end: end.t_ns)
    what = "job" if len(record.ends) == 1 else died[0].name
    more = f" (and {len(died) - 1} more)" if len(died) > 1 else ""
    return f"{what} died{more}{_when(record, record.death)}"


def _when(record: RunRecord, death: Notice) -> str:
    when = "" if record.start_ns is None else f" at {amount(Dimension.TIME, max(0, death.t_ns - record.start_ns))}"
    whose = f"QP {death.host}->{death.peer}" if death.peer else f"a QP of {death.host}"
    return f"{when}: {whose}: {death.reason.replace('_', ' ').lower()}"
