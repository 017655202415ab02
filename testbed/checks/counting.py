"""How much the counters of endpoints grew in a window, to the grain of their snapshots. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from math import inf

from testbed.checks.derived import derived
from testbed.checks.expect import Scope, Span, Window
from testbed.checks.record import RunRecord, Snapshot
from testbed.checks.whom import hosts_of
from testbed.checks.windows import Interval, NoData, window_intervals

LOST_PREFIX = "lost_"
"""Endpoints count lost packets by reason; the metric is the sum."""

Count = Callable[[Mapping[str, int], str], int]
"""What is counted, from the counters of a host and its name."""


def packets_lost(record: RunRecord, window: Window) -> float:
    """Data packets that senders took for lost, for any reason."""
    return growth(record, window, _lost)


def counted(record: RunRecord, window: Window, name: str) -> float:
    """How much the counter `name` grew."""
    return growth(record, window, lambda counters, host: _pick(counters, name, host))


def final_counters(record: RunRecord, scope: Scope) -> Mapping[str, Mapping[str, int]]:
    """The final counters of the workload's hosts, or of the one that is asked for (of a pair: the sender).

    Raises NoData when one never gave them: its events may be cut short too.
    """
    hosts = hosts_of(record, scope)
    silent = [host for host in hosts if host not in record.counters]
    if silent:
        raise NoData(f"no final counters of {', '.join(silent[:4])}{' and others' if len(silent) > 4 else ''}")
    return {host: record.counters[host] for host in hosts}


def growth(record: RunRecord, window: Window, count: Count) -> float:
    """Over all hosts of the window's scope. A window takes the last snapshot before it and the first one after."""
    final = final_counters(record, window.scope)
    total = sum(count(counters, host) for host, counters in final.items())
    if window.span is Span.RUN:
        return total
    during = sum(_growth(record, host, part, count) for part in window_intervals(record, window) for host in final)
    return total - during if window.span is Span.CLEAN else during


def _growth(record: RunRecord, host: str, interval: Interval, count: Count) -> int:
    shots, times = _shots(record).get(host, ([], []))
    before = bisect_right(times, interval.begin) - 1
    after = bisect_left(times, interval.end) if interval.end != inf else len(times)
    at_end = shots[after].counters if after < len(shots) else record.counters[host]
    return count(at_end, host) - (count(shots[before].counters, host) if before >= 0 else 0)


@derived
def _shots(record: RunRecord) -> dict[str, tuple[list[Snapshot], Sequence[int]]]:
    """By host: its snapshots in order of time, and their times."""
    found: dict[str, list[Snapshot]] = {}
    for shot in sorted(record.snapshots, key=lambda shot: shot.t_ns):
        found.setdefault(shot.host, []).append(shot)
    return {host: (shots, [shot.t_ns for shot in shots]) for host, shots in found.items()}


def _lost(counters: Mapping[str, int], host: str) -> int:
    reasons = [count for name, count in counters.items() if name.startswith(LOST_PREFIX)]
    if not reasons:
        raise NoData(f"{host} did not count lost packets")
    return sum(reasons)


def _pick(counters: Mapping[str, int], name: str, host: str) -> int:
    if name not in counters:
        raise NoData(f"{host} did not count {name}")
    return counters[name]
