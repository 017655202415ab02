"""What faults leave behind: paths out of use, routes that switches lack, QPs that deliver nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.ends import End
from mrc_testbed.testbed.checks.intervals import Interval, TimeSet
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.evidence.events import DENIED, GOOD, SKIP, Stall


def left_behind(record: RunRecord, faults: TimeSet, after_ns: int) -> TimeSet:
    """The moments at which something was out of use because of a fault: from then on until `after_ns` after it is back.

    `faults`: the windows of all faults. Any denial is due to them that is not older than the first.
    """
    still = [*missing_routes(record), *(stall_span(record, stall) for stall in all_stalls(record))]
    spans = [*_paths_out(record, faults), *filter(faults.meets, still)]
    return TimeSet(Interval(begin, end + after_ns) for begin, end in spans)


def _paths_out(record: RunRecord, faults: TimeSet) -> Iterator[Interval]:
    """Each time in which a path was out of use, from the moment on that ties it to a fault."""
    first_ns = min((part.begin for part in faults), default=inf)
    since: dict[tuple[str, str, int, int], float] = {}
    for change in record.ev_changes:
        if change.new in (GOOD, SKIP):
            if change.path in since:
                yield Interval(since.pop(change.path), change.t_ns)
        elif faults.holds(change.first_lost_tx_ns):
            since[change.path] = min(change.first_lost_tx_ns, since.get(change.path, inf))
        elif faults.holds(change.t_ns) or (change.new == DENIED and change.t_ns >= first_ns):
            since.setdefault(change.path, change.t_ns)
    yield from (Interval(begin, inf) for begin in since.values())


@derived
def missing_routes(record: RunRecord) -> list[Interval]:
    """The times in which a T0 lacked next hops."""
    return list(_missing_routes(record))


def _missing_routes(record: RunRecord) -> Iterator[Interval]:
    lacking: set[str] = set()
    began = 0.0
    for row in record.routes:
        before = bool(lacking)
        # Where detours are learned, a T0 may have more of them than it had next hops before.
        (lacking.add if row.next_hops != row.of else lacking.discard)(row.node)
        if lacking and not before:
            began = float(row.t_ns)
        elif before and not lacking:
            yield Interval(began, float(row.t_ns))
    if lacking:
        yield Interval(began, inf)


def stall_span(record: RunRecord, stall: Stall) -> Interval:
    """Its time; one that never ended lasts until the job or the flow does."""
    if stall.end_ns is not None:
        return Interval(stall.begin_ns, max(stall.begin_ns, stall.end_ns))
    end = _end_of(record, stall)
    return Interval(stall.begin_ns, max(stall.begin_ns, end.t_ns if end and end.error else record.end_ns))


def _end_of(record: RunRecord, stall: Stall) -> End | None:
    return record.ends.get(record.scenario.job.owner_of(record.scenario.shape(), stall.qp, stall.host, stall.peer))


def stopped_in(record: RunRecord, stall: Stall) -> str:
    """Why the testbed stopped a job or flow whose stall had not ended; empty if it did not."""
    mine = _end_of(record, stall)
    stopped = record.stopped.values() if stall.end_ns is None else ()
    return next((end.why for end in stopped if mine in (None, end)), "")


@derived
def all_stalls(record: RunRecord) -> list[Stall]:
    """All that were reported, in order of time, those that never ended too."""
    return sorted((*record.stalls, *_unended(record)), key=lambda stall: stall.begin_ns)


def _unended(record: RunRecord) -> Iterator[Stall]:
    """Stalls that the last snapshot of a host has, and that were not reported as over later."""
    known = {(stall.host, stall.qp, stall.begin_ns) for stall in record.stalls}
    for host, shot in record.snapshots.last().items():
        for qp, begin_ns in (shot.stalled or {}).items():
            if (host, qp, begin_ns) not in known:
                peer = record.qps.get(host, {}).get(qp)
                yield Stall(host, peer.peer if peer else "", qp, begin_ns, None)
