"""Losses, trims, ECN marks and retransmissions: where, when and how many. Pure.

Endpoints tell their counters five times a second, and so do switch ports that run the port program (ports.csv). A count
is put into the middle of the time since the reading before.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from testbed.checks.counting import LOST_PREFIX
from testbed.checks.record import RunRecord, Snapshot
from testbed.pages.report.clock import Clock
from testbed.pages.report.samples import PortSamples
from testbed.report.transport_words import chooses_paths
from testbed.rundir.tables import PortSample
from topos.plan import Plan

LEAST_GRAIN_S = 0.2
MOST_BINS = 600
MOST_ROWS = 16
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
    """What is counted by the port program. `total`: its names in counters.json; `outward`: on the way out; `of_trims`:
    packets of MRC alone are trimmed."""

    title: str
    pick: Callable[[PortSample], int]
    total: tuple[str, ...]
    outward: bool
    of_trims: bool = False


PORT_KINDS = (
    LossKind("Trimmed to headers, by switch port", lambda row: row.trimmed, ("out_trimmed",), True, True),
    LossKind("ECN marks, by switch port", lambda row: row.marked, ("out_marked",), True),
    LossKind("Dropped by a full queue, data, by switch port", lambda row: row.dropped, ("out_dropped",), True),
    LossKind(
        "Dropped by injected loss, data and control, by link and direction",
        lambda row: row.lost,
        ("in_data_dropped", "in_trimmed_dropped", "in_control_dropped", "in_other_dropped"),
        False,
    ),
    LossKind("Corrupted by injection, by link and direction", lambda row: row.corrupted, ("in_corrupted",), False),
)


def losses(record: RunRecord, samples: PortSamples, clock: Clock) -> dict[str, Any]:
    """`grain` in s; `groups`: title, source, rows; of a row its label, its total and `bins`: [number, count] where
    there was anything. Kinds of which nothing was counted are in `none`; `untimed`: of switch ports only totals are
    known, in a folder without ports.csv."""
    grain_s = max(LEAST_GRAIN_S / clock.speed, clock.length_s / MOST_BINS)
    put = _Binner(clock, grain_s)
    of_ports = list(_of_ports(record, put))
    groups = [
        *(put.group(title, FROM_HOSTS, _of_hosts(record, names)) for title, names in _host_kinds(record).items()),
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


_AGAIN = {"Retransmissions, by sender": "retransmitted"}
HOST_KINDS: Mapping[str, Mapping[str, str]] = {
    "mrc": {
        "Data packets taken for lost, by sender": f"{LOST_PREFIX}*",
        **_AGAIN,
        "Trimmed packets received, by receiver": "trimmed_received",
        "Answers that told of ECN marks, by sender": "sacks_with_ce",
    },
    "roce": {
        **_AGAIN,
        "NAKs of a gap, by sender": "nacks_received",
        "Timeouts, by sender": "timeouts",
        "Congestion notifications, by sender": "cnps_received",
    },
    "tcp": _AGAIN,
}
"""What endpoints of a transport count, and the counters, or a pattern of those that are summed."""


def _host_kinds(record: RunRecord) -> Mapping[str, str]:
    return HOST_KINDS[record.scenario.transport]


def _of_hosts(record: RunRecord, pattern: str) -> list[Reading]:
    """Five times a second, and the final counters: what came after the last of the five is at the end."""
    finals = [Snapshot(record.end_ns, host, counters) for host, counters in record.counters.items()]
    # All hosts count the same; looking for names in each of an hour's snapshots would take seconds.
    known = {name for shot in (*record.snapshots[-1:], *finals) for name in shot.counters}
    names = fnmatch.filter(known, pattern)
    shots = (*record.snapshots, *finals)
    return [Reading(shot.t_ns, shot.host, sum(shot.counters.get(name, 0) for name in names)) for shot in shots]


def _of_ports(record: RunRecord, put: _Binner) -> Iterable[dict[str, Any]]:
    for kind in PORT_KINDS:
        if kind.of_trims and not chooses_paths(record.scenario):
            continue
        if record.ports:
            rows = (
                Reading(row.t_ns, _place(record.plan, row.node, row.port, kind.outward), kind.pick(row))
                for row in record.ports
            )
            yield put.group(kind.title, FROM_PORTS, rows)
        else:
            yield put.group(kind.title, FROM_TOTALS, _totals(record, kind), timed=False)


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
        for t_ns, place, count in sorted(readings):
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
