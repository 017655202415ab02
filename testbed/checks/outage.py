"""Outage as every transport has it: how long QPs delivered nothing, and whether the job died of one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.counting import final_counters
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.events import Stall
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.scope import belongs, hosts_of
from mrc_testbed.testbed.checks.windows import (
    AROUND_FAULTS,
    Interval,
    NoData,
    NoPart,
    stretches,
    window_intervals,
    workload_ns,
)
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.expect.vocabulary import Dimension


@computes("stall")
def longest_stalls(record: RunRecord, window: Window) -> Sequence[float]:
    """The longest stall of each QP that sends data, in ns; 0 for one without a stall.

    A stall belongs to a window around faults if it overlaps one, and then counts whole: what a fault causes may outlast
    it. In windows of times the part inside counts.
    """
    length, mine = _length_in(record, window), belongs(record, window.scope)
    longest = {key: 0.0 for key in _senders(record) if mine(key[0], key[1])}
    for stall in stalls(record):
        key = (stall.host, stall.peer, stall.qp)
        if mine(stall.host, stall.peer):
            longest[key] = max(longest.get(key, 0.0), length(stall_span(record, stall)))
    if not longest:
        silent = [host for host in hosts_of(record, window.scope) if host not in record.qps]
        raise NoData(f"{silent[0]} did not count packets by QP") if silent else NoPart("no QP sent any data")
    return list(longest.values())


def _length_in(record: RunRecord, window: Window) -> Callable[[Interval], float]:
    if window.span is Span.RUN or window.span in AROUND_FAULTS:
        inside = stretches(record, window)
        return lambda stall: stall.end - stall.begin if inside(stall) else 0.0
    parts = window_intervals(record, window)
    return lambda stall: max(max(0.0, min(stall.end, part.end) - max(stall.begin, part.begin)) for part in parts)


def stall_span(record: RunRecord, stall: Stall) -> Interval:
    """Its time; one that never ended lasts until the job does."""
    return Interval(stall.begin_ns, max(stall.begin_ns, record.end_ns if stall.end_ns is None else stall.end_ns))


@derived
def _senders(record: RunRecord) -> list[tuple[str, str, str]]:
    """Host, peer and name of each end of a QP that sends data."""
    rows = ((host, name, qp) for host, qps in record.qps.items() for name, qp in qps.items())
    return [(host, qp.peer, name) for host, name, qp in rows if qp.sent]


@derived
def stalls(record: RunRecord) -> list[Stall]:
    """All stalls in order of time, those that never ended too. Raises NoData if nobody watched for them."""
    if not record.stalls and all(shot.stalled is None for shot in record.snapshots.last().values()):
        raise NoData("the endpoints did not watch for stalls")
    return sorted((*record.stalls, *_unended(record)), key=lambda stall: stall.begin_ns)


def _unended(record: RunRecord) -> Iterator[Stall]:
    """Stalls that the last snapshot of a host has, and that were not reported as over later."""
    known = {(stall.host, stall.qp, stall.begin_ns) for stall in record.stalls}
    for host, shot in record.snapshots.last().items():
        for qp, begin_ns in (shot.stalled or {}).items():
            if (host, qp, begin_ns) not in known:
                peer = record.qps.get(host, {}).get(qp)
                yield Stall(host, peer.peer if peer else "", qp, begin_ns, None)


@computes("job_died")
def job_died(record: RunRecord, window: Window) -> float:
    """1 if a QP went to ERROR before the job was done. Raises NoData when the workload never began."""
    workload_ns(record)
    if record.death is None and not record.workload_done:
        final_counters(record, window.scope)
    return float(record.death is not None)


@computes("died_at")
def died_at(record: RunRecord, window: Window) -> float:
    """When that was, in ns from the start of the workload. Raises NoPart if the job did not die."""
    begin, _ = workload_ns(record)
    if record.death is None:
        raise NoPart("the job did not die")
    return max(0, record.death.t_ns - begin)


def death_words(record: RunRecord) -> str:
    """`job died at 3.79 s: QP h0->h1: retry exceeded`; empty if it did not."""
    death = record.death
    if death is None:
        return ""
    when = "" if record.start_ns is None else f" at {amount(Dimension.TIME, max(0, death.t_ns - record.start_ns))}"
    whose = f"QP {death.host}->{death.peer}" if death.peer else f"a QP of {death.host}"
    return f"job died{when}: {whose}: {death.reason.replace('_', ' ').lower()}"
