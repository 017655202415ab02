"""Growth of endpoint counters in a window, to the grain of their snapshots. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, NoReturn

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.intervals import Interval, TimeSet
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.scope import belongs, hosts_of, pairs_of
from mrc_testbed.testbed.checks.windows import (
    DURING,
    KnownBetween,
    NoData,
    NoPart,
    Outage,
    aftermath_ns,
    fault_edges,
    fault_windows,
    in_words,
    nothing,
    outages,
    window_times,
    workload_ns,
)
from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.expect import EVERYBODY, Scope, Span, Window
from mrc_testbed.topos.units import some

LOST_PREFIX = "lost_"
"""Endpoints count lost packets by reason; the metric is the sum."""

Count = Callable[[Snapshot], int]
"""Derives a count from the counters of a host."""


class Grown(NamedTuple):
    """By how much a count grew: at least, and at most."""

    least: int
    most: int


@computes("packets_lost")
def packets_lost(record: RunRecord, window: Window) -> float:
    """Data packets that senders declared lost, for any reason; for pairs those of their QPs."""
    if pairs_of(record, window.scope) is None:
        return growth(record, window, _lost)
    return _known([_total(_of_qps(record, window, idle_too=True))])[0]


@computes("lost_per_qp")
def lost_per_qp(record: RunRecord, window: Window) -> Sequence[float]:
    """Data packets that each QP declared lost, for QPs that sent data. Raises NoPart where none did, NoData."""
    return _known(_of_qps(record, window, idle_too=False) or _nobody_sent())


@computes("wasted")
def wasted(record: RunRecord, window: Window) -> float:
    """Payload bytes that all hosts sent over those that arrived for the first time, less 1. In a part of the run
    packets sent again over those sent for the first time: bytes that are under way at its edges would count on one side
    only. Raises NoData."""
    if window.span is not Span.RUN:
        return _sent_again(record, window)
    sent, delivered = (counted(record, window, name) for name in ("bytes_sent", "bytes_delivered"))
    if sent < delivered:
        raise NoData("more bytes arrived than were sent: the counts are not of the same time")
    share = sent / delivered - 1 if delivered else nothing("nothing was delivered")
    if share and record.stopped:
        raise KnownBetween("the testbed stopped bytes under way", [0.0], [share])
    return share


def _sent_again(record: RunRecord, window: Window) -> float:
    if record.scenario.transport.subflows:
        raise NoData("the kernel does not count what MPTCP sends again over another subflow: ask for the whole run")
    again, sent = (
        _total(_by_host(record, window, partial(_pick, name=name))) for name in ("retransmitted", "data_sent")
    )
    if not sent.most:
        raise NoData(f"no data packet was sent{in_words(window)}")
    least = again.least / max(sent.most - again.least, 1)
    most = again.most / (sent.least - again.most) if sent.least > again.most else inf
    return least if least == most else _refuse([least], [most])


def lost_by(record: RunRecord, outage: Outage) -> Sequence[int]:
    """What each QP that sent data lost in the window of one outage. Raises NoData."""
    others = TimeSet(one.window(aftermath_ns(record)) for one in outages(record) if one is not outage)
    parts = TimeSet([outage.window(aftermath_ns(record))])
    qps = _senders(record, EVERYBODY, idle_too=False)
    found = [_during(record, host, parts, others, partial(_lost_by, name)) for host, name in qps]
    return _known(found or _nobody_sent())


def _nobody_sent() -> NoReturn:
    raise NoPart("no QP sent any data")


def counted(record: RunRecord, window: Window, name: str) -> float:
    """Growth of the counter `name`. Raises KnownBetween, NoData."""
    return growth(record, window, partial(_pick, name=name))


def growth(record: RunRecord, window: Window, count: Count) -> float:
    """Growth summed over all hosts of the window's scope. Raises KnownBetween, NoData."""
    return _known([_total(_by_host(record, window, count))])[0]


def _known(found: Sequence[Grown]) -> Sequence[int]:
    """Exact figures. Raises KnownBetween where snapshots leave one of them open."""
    least, most = [one.least for one in found], [one.most for one in found]
    return least if least == most else _refuse(least, most)


def _refuse(least: Sequence[float], most: Sequence[float]) -> NoReturn:
    gap = "counters are reported five times a second, and what grew at an edge of that time may belong to another part"
    low, high = sum(least), sum(most)
    known = f"at least {number(low)}" if high == inf else f"between {number(low)} and {number(high)}"
    raise KnownBetween(f"{gap}: {known}", least, most)


def _total(found: Iterable[Grown]) -> Grown:
    least, most = zip(*found, strict=True)
    return Grown(sum(least), sum(most))


def _by_host(record: RunRecord, window: Window, count: Count) -> list[Grown]:
    return [_grown(record, host, window, count) for host in final_counters(record, window.scope)]


def _of_qps(record: RunRecord, window: Window, idle_too: bool) -> list[Grown]:
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
        raise NoData(f"no final counters of {some(silent)}")
    return {host: record.counters[host] for host in hosts}


def _grown(record: RunRecord, host: str, window: Window, count: Count) -> Grown:
    """Growth of one host: for windows around faults from the snapshots around them, for windows of times from those
    inside. Raises NoData."""
    total = count(_final(record)[host])
    if window.span is Span.RUN:
        return Grown(total, total)
    times = window_times(record, window)
    if window.span in DURING:
        others = TimeSet(time for fault, time in fault_windows(record) if window.fault not in ("", fault))
        return _during(record, host, times, others, count)
    if window.span is not Span.CLEAN:
        return _within(record, host, times, count)
    if not _seen_clean(record, host, _around(record, host, ~times)):
        raise NoData(f"{host} reported its counters at no time of the workload outside all faults")
    during = _during(record, host, ~times, TimeSet(), count)
    return Grown(total - during.most, total - during.least)


def _during(record: RunRecord, host: str, parts: TimeSet, others: TimeSet, count: Count) -> Grown:
    """From the last snapshot before each part to the first one after. What grew between two snapshots that reach out of
    the parts and into one of `others` may be of either."""
    least = most = 0
    for before, after in _around(record, host, parts):
        grown = _between(record, host, before, after, count)
        most += grown
        least += grown - sum(
            _between(record, host, first, first + 1, count)
            for first in range(before, after)
            if (TimeSet([_reach(record, host, first)]) - parts) & others
        )
    return Grown(least, most)


def _reach(record: RunRecord, host: str, first: int) -> Interval:
    """The time between a snapshot and the next one."""
    return Interval(_time_at(record, host, first), _time_at(record, host, first + 1))


def _time_at(record: RunRecord, host: str, number: int) -> float:
    """When a snapshot was taken; infinite before the first and after the last one."""
    times = record.snapshots.times_ns(host)
    return -inf if number < 0 else times[number] if number < len(times) else inf


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


def _between(record: RunRecord, host: str, before: int, after: int, count: Count) -> int:
    """Growth from one snapshot to another: before the first one a count is 0, after the last one it is final."""
    known = after < len(record.snapshots.times_ns(host))
    end = record.snapshots.at(host, after) if known else _final(record)[host]
    return count(end) - (count(record.snapshots.at(host, before)) if before >= 0 else 0)


def _within(record: RunRecord, host: str, times: TimeSet, count: Count) -> Grown:
    """From the first snapshot inside each part to the last one. What grew between either and its neighbour outside may
    belong to the part where a fault began or ended meanwhile. Raises NoData with fewer than two inside every part."""
    grown = [_within_part(record, host, part, count) for part in times]
    if not any(seen for seen, _ in grown):
        raise NoData(f"{host} reported its counters less than twice in that time; reports come five times a second")
    return _total(one for _, one in grown)


def _within_part(record: RunRecord, host: str, part: Interval, count: Count) -> tuple[bool, Grown]:
    """The same of one part, and whether there are two snapshots inside."""
    told = record.snapshots.times_ns(host)
    first, last = bisect_left(told, part.begin), bisect_right(told, part.end) - 1
    before, after = _bounds(record, host, part)
    if last <= first:
        return False, Grown(0, _between(record, host, before, after, count))
    least = _between(record, host, first, last, count)
    unknown = [gap for gap in ((before, first), (last, after)) if _has_edge(record, host, *gap)]
    return True, Grown(least, least + sum(_between(record, host, *gap, count) for gap in unknown))


def _has_edge(record: RunRecord, host: str, before: int, after: int) -> bool:
    """Whether a fault began, healed or lost its last packets between two snapshots."""
    begin, end = _time_at(record, host, before), _time_at(record, host, after)
    edges = fault_edges(record)
    return begin < end and bisect_right(edges, begin) < bisect_left(edges, end)


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
