"""The states of paths (EVs) and NIC ports over time, one row each, grouped by the fault that changed them. Pure."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.left_behind import stall_span
from mrc_testbed.testbed.checks.outage import stalls
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.windows import NoData, outages
from mrc_testbed.testbed.evidence.events import EvChange, PathKey, PathRests, PortChange
from mrc_testbed.testbed.pages.report.clock import Clock
from mrc_testbed.testbed.pages.report.mapped import MAPPED, mapped_timelines
from mrc_testbed.testbed.pages.report.variation import IN_USE, RESTING, Timeline, bounded
from mrc_testbed.testbed.scenario.model.evs import ev_ids
from mrc_testbed.topos.nodes import Host

LETTERS = {
    "GOOD": IN_USE,
    "SKIP": RESTING,
    "ASSUMED_BAD": "B",
    "DENIED": "D",
    "UP": IN_USE,
    "RISING": RESTING,
    "DOWN": "B",
}
NO_FAULT, DENIED_ONLY, PORTS = "no fault", "denylist", "NIC ports, as hosts saw them"
STALLS = "QPs that stalled"
_BEFORE = {IN_USE: RESTING, RESTING: IN_USE}
"""What a path was before it came to rest, or back from there."""
_DELIVERS, _STANDS = "P", "W"
_TWO_TIERS = 2
_WHAT = {PORTS: "down", STALLS: "stalled"}


def timelines(record: RunRecord, clock: Clock) -> dict[str, Any]:
    """`groups`: each a title, rows, and what its B means; of a row its label, first state, and times (s) and states
    after it.

    Only paths that ever left GOOD have a row, and QPs that ever stalled. `all`: how many paths there are, None for
    a transport that has none to choose; `named`: what a path's row names behind the hosts; `mapped`, `ports`, `stalls`:
    how many of the rows are those of parts that the mapper accused, of NIC ports and of QPs. `left_out`: rows that were
    too many.
    """
    by_path: dict[PathKey, list[EvChange]] = {path: [] for path in record.rests}
    for change in record.ev_changes:
        by_path.setdefault(PathKey(change.host, change.peer, change.plane, change.uplink), []).append(change)
    causes = _causes(record)
    groups: dict[str, list[Timeline]] = {MAPPED: mapped_timelines(record, clock)}
    groups |= {name: [] for name in (*_fault_names(record), NO_FAULT, DENIED_ONLY)}
    for path in sorted(by_path, key=lambda path: (path[2:], path[:2])):
        changes = by_path[path]
        line = _timeline(_path_label(record, path), changes, record.rests.get(path, PathRests()), clock)
        groups[_group(changes, causes)].append(line)
    groups[STALLS] = _stall_timelines(record, clock)
    groups[PORTS] = _port_timelines(record.port_changes, clock)
    kept, grain_s, left_out = bounded(groups, speed=clock.speed)
    titled = [_titled(title, rows) for title, rows in kept.items() if rows]
    return {
        "groups": titled,
        "grain": grain_s,
        "left_out": left_out,
        "all": _path_count(record) if record.scenario.transport.has_paths else None,
        "named": _named(record),
        "mapped": len(kept[MAPPED]),
        "ports": len(kept[PORTS]),
        "stalls": len(kept[STALLS]),
    }


def _titled(title: str, rows: Sequence[Timeline]) -> dict[str, Any]:
    return {"title": title, "what": _WHAT.get(title, "given up"), "rows": [_as_row(one) for one in rows]}


def _fault_names(record: RunRecord) -> Iterable[str]:
    return dict.fromkeys(outage.fault for outage in outages(record))


def _causes(record: RunRecord) -> Mapping[EvChange, str]:
    return {one.change: one.fault for one in recoveries(record)}


def _group(changes: Sequence[EvChange], causes: Mapping[EvChange, str]) -> str:
    """The fault that retired it most often; the first of them where that is a draw."""
    faults = Counter(causes[change] for change in changes if change in causes)
    if faults:
        return faults.most_common(1)[0][0]
    return DENIED_ONLY if any("DENIED" in (change.old, change.new) for change in changes) else NO_FAULT


def _path_label(record: RunRecord, path: PathKey) -> str:
    """`h0→h4 p0 t1-2`: sender, peer, plane and the switches between their T0s, of hosts below one T0 none. Where
    switches hash EVs, `EV 5` in their place."""
    host, peer, plane, uplink = path
    ends = [record.plan.host_by_name.get(name) for name in (host, peer)]
    return " ".join([f"{host}\u2192{peer}", f"p{plane}", *_between(record, ends, uplink)])


def _between(record: RunRecord, ends: Sequence[Host | None], number: int) -> Iterator[str]:
    source, target = ends
    if not record.scenario.transport.names_paths:
        yield f"EV {number}"
    elif source and target:
        ways = record.plan.ways(source, target)
        yield from map(str, ways[number][1:-1]) if number < len(ways) else [f"way {number}"]


def _named(record: RunRecord) -> str:
    if not record.scenario.transport.names_paths:
        return "plane and EV"
    return "plane and T1" if len(record.plan.shape.family.tiers) <= _TWO_TIERS else "plane and switches between T0s"


def _timeline(label: str, changes: Sequence[EvChange], rests: PathRests, clock: Clock) -> Timeline:
    """Of one path; most have nothing but rests, and a long run has thousands of those."""
    states = rests.states.decode()
    if not changes:
        return Timeline(label, _BEFORE[states[0]], array("d", map(clock.at, rests.times_ns)), states)
    moves = [(t_ns, _BEFORE[state], state) for t_ns, state in zip(rests.times_ns, states, strict=True)]
    moves += [(change.t_ns, LETTERS[change.old], LETTERS[change.new]) for change in changes]
    moves.sort(key=lambda move: move[0])
    times = [clock.at(t_ns) for t_ns, _, _ in moves]
    return Timeline(label, moves[0][1], times, "".join(state for _, _, state in moves))


def _port_timelines(changes: Iterable[PortChange], clock: Clock) -> list[Timeline]:
    rows: dict[tuple[str, int, str], list[tuple[float, str]]] = {}
    for change in sorted(changes, key=lambda change: change.t_ns):
        row = rows.setdefault((change.peer or change.host, change.plane, change.host), [])
        row.append((clock.at(change.t_ns), LETTERS[change.state]))
    return [
        _row(f"{owner} port {plane}" + ("" if seen_by == owner else f", told to {seen_by}"), IN_USE, row)
        for (owner, plane, seen_by), row in sorted(rows.items())
    ]


def _stall_timelines(record: RunRecord, clock: Clock) -> list[Timeline]:
    """Those with the longest stall first."""
    rows: dict[tuple[str, str, str], list[Interval]] = {}
    try:
        for stall in stalls(record):
            rows.setdefault((stall.host, stall.peer, stall.qp), []).append(stall_span(record, stall))
    except NoData:
        return []
    ranked = sorted(rows.items(), key=lambda row: (-max(part.end - part.begin for part in row[1]), row[0]))
    several = Counter(key[:2] for key in rows)
    return [
        _row(
            f"{host}\u2192{peer}" + (f" {qp}" if several[host, peer] > 1 else ""),
            _DELIVERS,
            [(clock.at(t_ns), state) for part in parts for t_ns, state in zip(part, _STANDS + _DELIVERS, strict=True)],
        )
        for (host, peer, qp), parts in ranked
    ]


def _row(label: str, first: str, changes: Sequence[tuple[float, str]]) -> Timeline:
    return Timeline(label, first, [t for t, _ in changes], "".join(state for _, state in changes))


def _as_row(timeline: Timeline) -> dict[str, Any]:
    return {"label": timeline.label, "first": timeline.first, "t": [*timeline.times], "s": timeline.states}


def _path_count(record: RunRecord) -> int:
    """Paths that endpoints keep: between hosts that share a QP, both ways."""
    scenario, plan, hosts = record.scenario, record.plan, record.plan.host_by_name
    pairs = {ordered for src, dst in scenario.job.pairs(plan.shape) for ordered in ((src, dst), (dst, src))}
    return sum(len(ev_ids(scenario, plan, hosts[src], hosts[dst])) for src, dst in pairs)
