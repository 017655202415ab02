"""Growth of endpoint counters in a window, to the grain of their snapshots. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from testbed.checks.computation import computes
from testbed.checks.derived import derived
from testbed.checks.record import RunRecord
from testbed.checks.scope import belongs, hosts_of, pairs_of
from testbed.checks.snapshots import Snapshot
from testbed.checks.windows import AROUND_FAULTS, Interval, NoData, NoPart, nothing, window_intervals, workload_ns
from testbed.expect import EVERYBODY, Scope, Span, Window

LOST_PREFIX = "lost_"
"""Endpoints count lost packets by reason; the metric is the sum."""

Count = Callable[[Snapshot], int]
"""Derives a count from the counters of a host."""


@computes("packets_lost")
def packets_lost(record: RunRecord, window: Window) -> float:
    """Data packets that senders declared lost, for any reason; for pairs those of their QPs."""
    if pairs_of(record, window.scope) is None:
        return growth(record, window, _lost)
    return sum(_of_qps(record, window, idle_too=True))


@computes("lost_per_qp")
def lost_per_qp(record: RunRecord, window: Window) -> Sequence[float]:
    """Data packets that each QP declared lost, for QPs that sent data. Raises NoPart where none did, NoData."""
    found = _of_qps(record, window, idle_too=False)
    if not found:
        raise NoPart("no QP sent any data")
    return found


@computes("wasted")
def wasted(record: RunRecord, window: Window) -> float:
    """Payload bytes that all hosts sent over those that arrived for the first time, less 1. Raises NoData."""
    sent, delivered = (counted(record, window, name) for name in ("bytes_sent", "bytes_delivered"))
    return sent / delivered - 1 if delivered else nothing("nothing was delivered")


def lost_between(record: RunRecord, interval: Interval) -> list[int]:
    """The same for a time span. Raises NoData if nothing was counted, or no QP sent data."""
    qps = _senders(record, EVERYBODY, idle_too=False)
    found = [_between(record, host, interval, partial(_lost_by, name)) for host, name in qps]
    return found or nothing("no QP sent any data")


def counted(record: RunRecord, window: Window, name: str) -> float:
    """Growth of the counter `name`."""
    return growth(record, window, lambda shot: _pick(shot, name))


def _of_qps(record: RunRecord, window: Window, idle_too: bool) -> list[float]:
    qps = _senders(record, window.scope, idle_too)
    return [_grown(record, host, window, partial(_lost_by, name)) for host, name in qps]


def _senders(record: RunRecord, scope: Scope, idle_too: bool) -> list[tuple[str, str]]:
    """Hosts and their QPs. Raises NoData if a host did not count by QP."""
    mine = belongs(record, scope)
    found = []
    for host in final_counters(record, scope):
        if host not in record.qps:
            raise NoData(f"{host} did not count packets by QP")
        qps = record.qps[host].items()
        found += [(host, name) for name, qp in qps if mine(host, qp.peer) and (qp.sent or idle_too)]
    return found


def final_counters(record: RunRecord, scope: Scope) -> Mapping[str, Mapping[str, int]]:
    """The final counters of the workload's hosts, or of one host (for a pair: the sender).

    Raises NoData if one is missing: its events may be cut short too.
    """
    hosts = hosts_of(record, scope)
    silent = [host for host in hosts if host not in record.counters]
    if silent:
        raise NoData(f"no final counters of {', '.join(silent[:4])}{' and others' if len(silent) > 4 else ''}")
    return {host: record.counters[host] for host in hosts}


def growth(record: RunRecord, window: Window, count: Count) -> float:
    """Growth summed over all hosts of the window's scope."""
    return sum(_grown(record, host, window, count) for host in final_counters(record, window.scope))


def _grown(record: RunRecord, host: str, window: Window, count: Count) -> int:
    """Growth of one host: for fault windows from the snapshots around them, for windows of times from those inside."""
    total = count(_final(record)[host])
    if window.span is Span.RUN:
        return total
    parts = window_intervals(record, window)
    if window.span not in AROUND_FAULTS:
        return sum(_within(record, host, part, count) for part in parts)
    during = _around(record, host, parts)
    if window.span is Span.CLEAN and not _seen_clean(record, host, during):
        raise NoData(f"{host} reported its counters at no time of the workload outside all faults")
    grown = sum(_to(record, host, after, count) - _since(record, host, before, count) for before, after in during)
    return total - grown if window.span is Span.CLEAN else grown


def _seen_clean(record: RunRecord, host: str, during: Sequence[tuple[int, int]]) -> bool:
    """Whether two readings with no fault between them tell of some time of the workload; those of the warm-up do not.
    The first reading is 0 at the start of the daemon, the last one that at its end."""
    times = record.snapshots.times_ns(host)
    begin_ns, end_ns = workload_ns(record)
    edges = [-1, *(edge for part in during for edge in part), len(times)]
    return any(
        first < last and (first < 0 or times[first] < end_ns) and (last == len(times) or times[last] > begin_ns)
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    )


def _around(record: RunRecord, host: str, parts: Iterable[Interval]) -> list[tuple[int, int]]:
    """For each part the numbers of the last snapshot before it, -1 for none, and of the first one after; parts that
    share one are one, or its packets would count twice."""
    found: list[tuple[int, int]] = []
    for part in parts:
        before, after = _bounds(record, host, part)
        if found and before < found[-1][1]:
            earlier = found.pop()
            before, after = earlier[0], max(earlier[1], after)
        found.append((before, after))
    return found


def _bounds(record: RunRecord, host: str, interval: Interval) -> tuple[int, int]:
    times = record.snapshots.times_ns(host)
    return bisect_right(times, interval.begin) - 1, bisect_left(times, interval.end)


def _since(record: RunRecord, host: str, number: int, count: Count) -> int:
    return count(record.snapshots.at(host, number)) if number >= 0 else 0


def _to(record: RunRecord, host: str, number: int, count: Count) -> int:
    known = number < len(record.snapshots.times_ns(host))
    return count(record.snapshots.at(host, number) if known else _final(record)[host])


def _within(record: RunRecord, host: str, interval: Interval, count: Count) -> int:
    """From the first snapshot inside to the last one. Raises NoData with fewer than two."""
    times = record.snapshots.times_ns(host)
    first, last = bisect_left(times, interval.begin), bisect_right(times, interval.end) - 1
    if last <= first:
        raise NoData(f"{host} reported its counters less than twice in that time; reports come five times a second")
    return count(record.snapshots.at(host, last)) - count(record.snapshots.at(host, first))


def _between(record: RunRecord, host: str, interval: Interval, count: Count) -> int:
    """From the last snapshot before it to the first one after."""
    before, after = _bounds(record, host, interval)
    return _to(record, host, after, count) - _since(record, host, before, count)


@derived
def _final(record: RunRecord) -> dict[str, Snapshot]:
    """Final counters by host."""
    return {
        host: Snapshot(record.end_ns, host, counters, {name: qp.lost for name, qp in record.qps.get(host, {}).items()})
        for host, counters in record.counters.items()
    }


def _lost(shot: Snapshot) -> int:
    reasons = [count for name, count in shot.counters.items() if name.startswith(LOST_PREFIX)]
    if not reasons:
        raise NoData(f"{shot.host} did not count lost packets")
    return sum(reasons)


def _lost_by(qp: str, shot: Snapshot) -> int:
    if shot.lost is None:
        raise NoData(f"{shot.host} did not count packets by QP")
    return shot.lost.get(qp, 0)


def _pick(shot: Snapshot, name: str) -> int:
    if name not in shot.counters:
        raise NoData(f"{shot.host} did not count {name}")
    return shot.counters[name]
