"""Losses, trims, ECN marks and retransmissions: where, when and how many. Pure.

Endpoints tell their counters five times a second, and so do switch ports that run the port program (ports.csv). A count
is put into the middle of the time since the reading before.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.pages.report.samples import PortSamples
from mrc_testbed.topos.plan import Plan

LEAST_GRAIN_S = 0.2
MOST_BINS = 600
MOST_ROWS = 16
FINER = 2
"""Readings of a growing counter that are enough for a bin."""
FROM_HOSTS = "events.jsonl, counters of the endpoints"
FROM_PORTS = "ports.csv"
FROM_TOTALS = "counters.json: totals only, this folder has no ports.csv"
FROM_SAMPLES = "samples.csv"


class Reading(NamedTuple):
    """How many there were by a time, at a place."""

    t_ns: int
    place: str
    number: int


class LossKind(NamedTuple):
    """What is counted by the port program. `counted`: the column of ports.csv; `total`: its names in counters.json;
    `outward`: on the way out; `of_trims`: packets of MRC alone are trimmed."""

    title: str
    counted: str
    total: tuple[str, ...]
    outward: bool
    of_trims: bool = False


PORT_KINDS = (
    LossKind("Trimmed to headers, by switch port", "trimmed", ("out_trimmed",), True, True),
    LossKind("ECN marks, by switch port", "marked", ("out_marked",), True),
    LossKind("Dropped by a full queue, data, by switch port", "dropped", ("out_dropped",), True),
    LossKind(
        "Dropped by injected loss, data and control, by link and direction",
        "lost",
        ("in_data_dropped", "in_trimmed_dropped", "in_control_dropped", "in_other_dropped"),
        False,
    ),
    LossKind("Corrupted by injection, by link and direction", "corrupted", ("in_corrupted",), False),
)


def losses(record: RunRecord, samples: PortSamples, clock: Clock) -> dict[str, Any]:
    """`grain` in s; `groups`: title, source, rows; of a row its label, its total and `bins`: [number, count] where
    there was anything. Kinds with a count of 0 are in `none`; `untimed`: of switch ports only totals are
    known, in a folder without ports.csv."""
    grain_s = grain_of(clock)
    put = _Binner(clock, grain_s)
    of_ports = list(_of_ports(record, put))
    of_hosts = _of_hosts(record, record.scenario.transport.counted, grain_s * 1e9 / FINER)
    groups = [
        *(put.group(title, FROM_HOSTS, readings) for title, readings in of_hosts.items()),
        *of_ports,
        put.group(
            "Dropped by the kernel, data and control, by interface", FROM_SAMPLES, _of_kernel(record.plan, samples)
        ),
    ]
    return {
        "grain": round(grain_s, 4 if clock.speed == 1 else 9),
        "groups": [group for group in groups if group["rows"]],
        "none": [group["title"] for group in groups if not group["rows"]],
        "untimed": not record.ports and any(group["rows"] for group in of_ports),
    }


def grain_of(clock: Clock) -> float:
    """The length of a bin, in s."""
    return max(LEAST_GRAIN_S / clock.speed, clock.length_s / MOST_BINS)


def _of_hosts(record: RunRecord, kinds: Mapping[str, str], apart_ns: float) -> dict[str, list[Reading]]:
    """By kind. Five times a second, in a long run more rarely, and the final counters: what came after the last of the
    five is at the end."""
    found: dict[str, list[Reading]] = {kind: [] for kind in kinds}
    finals = [Snapshot(record.end_ns, host, counters) for host, counters in record.counters.items()]
    names: dict[str, list[str]] = {}
    for shot in chain(record.snapshots.thinned(apart_ns), finals):
        if not names:  # all hosts count the same
            known = {*shot.counters, *(name for final in finals for name in final.counters)}
            names = {kind: _matching(known, patterns) for kind, patterns in kinds.items()}
        for kind, readings in found.items():
            readings.append(Reading(shot.t_ns, shot.host, sum(shot.counters.get(name, 0) for name in names[kind])))
    return found


def _matching(names: Iterable[str], patterns: str) -> list[str]:
    return sorted({name for pattern in patterns.split() for name in fnmatch.filter(names, pattern)})


def _of_ports(record: RunRecord, put: _Binner) -> Iterable[dict[str, Any]]:
    for kind in PORT_KINDS:
        if kind.of_trims and not record.scenario.transport.has_paths:
            continue
        if record.ports:
            yield put.group(kind.title, FROM_PORTS, _readings(record, kind))
        else:
            yield put.group(kind.title, FROM_TOTALS, _totals(record, kind), timed=False)


def _readings(record: RunRecord, kind: LossKind) -> Iterator[Reading]:
    """In the order of the file, which is that of time; none where nothing of the kind was counted."""
    places: dict[tuple[str, str], str] = {}
    columns = [record.ports.column(name) for name in ("t_ns", "node", "port", kind.counted)]
    for t_ns, node, port, number in zip(*columns, strict=True) if any(columns[-1]) else ():
        if (node, port) not in places:
            places[node, port] = _place(record.plan, node, port, kind.outward)
        yield Reading(t_ns, places[node, port], number)


def _totals(record: RunRecord, kind: LossKind) -> list[Reading]:
    ports = record.books.ports if record.books else {}
    return [
        Reading(0, _place(record.plan, node, port, kind.outward), sum(counts.get(name, 0) for name in kind.total))
        for (node, port), counts in ports.items()
    ]


def _of_kernel(plan: Plan, samples: PortSamples) -> list[Reading]:
    return [Reading(t_ns, f"{node} {port}", count) for t_ns, node, port, count in samples.drops]


def _place(plan: Plan, node: str, port: str, outward: bool) -> str:
    """`p0-t0-1 → h6`: the way that the packets were going."""
    other = next((far.node for own, far in plan.ports.get(node, []) if own.name == port), port)
    return f"{node} \u2192 {other}" if outward else f"{other} \u2192 {node}"


class _Binner:
    """Makes rows of counts over time."""

    def __init__(self, clock: Clock, grain_s: float) -> None:
        self._clock = clock
        self._grain_s = grain_s
        self._last = int(clock.length_s / grain_s)

    def group(self, title: str, source: str, readings: Iterable[Reading], timed: bool = True) -> dict[str, Any]:
        """Places with anything to count, those with most first; many of them as one row."""
        rows = self._rows(readings)
        ranked = sorted(rows.items(), key=lambda row: -sum(row[1].values()))
        shown, others = ranked[:MOST_ROWS], ranked[MOST_ROWS:]
        if others:
            shown.append((f"{len(others)} more places", _added(bins for _, bins in others)))
        made = [
            {"label": label, "total": sum(bins.values()), "bins": sorted(bins.items()) if timed else []}
            for label, bins in shown
        ]
        return {"title": title, "source": source, "rows": made}

    def _rows(self, readings: Iterable[Reading]) -> dict[str, dict[int, int]]:
        before: dict[str, tuple[int, int]] = {}
        rows: dict[str, dict[int, int]] = {}
        for t_ns, place, count in readings:
            last_ns, last = before.get(place, (t_ns, 0))
            before[place] = t_ns, max(count, last)
            if count > last:
                bins = rows.setdefault(place, {})
                number = self._bin((last_ns + t_ns) / 2)
                bins[number] = bins.get(number, 0) + count - last
        return rows

    def _bin(self, t_ns: float) -> int:
        return min(max(int(self._clock.at(t_ns) / self._grain_s), 0), self._last)


def _added(rows: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for bins in rows:
        for number, count in bins.items():
            total[number] = total.get(number, 0) + count
    return total
