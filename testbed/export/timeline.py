"""A run as spans, moments and curves on tracks: what every export of its course is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from mrc_testbed.testbed.checks.healing import healings
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.steps import JobStep, steps_by_job
from mrc_testbed.testbed.checks.windows import outages
from mrc_testbed.testbed.evidence.events import ASSUMED_BAD

MOST_STEPS = 10_000
"""Of a job; with more, the slowest are shown."""
SLOWEST = 100
MOST_OF_A_KIND = 20_000
"""Of moments and of points of curves, so that a long run can be opened; what is left out is said."""
RUN = "run"
_BAD = "EV retired"
_BACK = "EV back"


@dataclass(frozen=True, slots=True)
class TraceMoment:
    """Something that happens at `begin_ns` of CLOCK_MONOTONIC. `node` and `track`: where it is drawn."""

    node: str
    track: str
    name: str
    begin_ns: int
    facts: Mapping[str, str | int | float] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class TraceSpan(TraceMoment):
    """Something that lasts from then until `end_ns`. Two spans of one track do not overlap unless one is inside the
    other."""

    end_ns: int


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A value from then on."""

    node: str
    name: str
    t_ns: int
    value: float


@dataclass(frozen=True)
class RunCourse:
    """`left_out`: in words what is not there, because there was too much."""

    spans: tuple[TraceSpan, ...]
    moments: tuple[TraceMoment, ...]
    curves: tuple[CurvePoint, ...]
    left_out: tuple[str, ...]
    begin_ns: int
    end_ns: int


def timeline(record: RunRecord) -> RunCourse:
    """All of a run that its folder tells. Raises RecordError."""
    begin_ns = record.history[0].t_ns if record.history else record.start_ns or 0
    end_ns = max([begin_ns, record.end_ns, *(line.t_ns for line in record.history if line.op != "interrupt")])
    left_out: list[str] = []
    spans = [*_phases(record, end_ns), *_faults(record, end_ns), *_steps(record, left_out), *_ports(record, end_ns)]
    spans += _stalls(record, end_ns)
    moments = _capped(list(_ev_moments(record)), "changes of EVs", left_out)
    return RunCourse(tuple(spans), tuple(moments), tuple(_goodput(record)), tuple(left_out), begin_ns, end_ns)


def _capped(moments: list[TraceMoment], what: str, left_out: list[str]) -> list[TraceMoment]:
    if len(moments) > MOST_OF_A_KIND:
        left_out.append(f"{len(moments) - MOST_OF_A_KIND} of {len(moments)} {what}")
    return moments[:MOST_OF_A_KIND]


def _phases(record: RunRecord, end_ns: int) -> Iterator[TraceSpan]:
    open_: dict[str, int] = {}
    for line in record.history:
        if line.op == "phase" and line.type == "invoke":
            open_[line.phase] = line.t_ns
        elif line.op == "phase" and line.phase in open_:
            facts = {"error": line.error} if line.error else {}
            yield TraceSpan(RUN, "phases", line.phase, open_.pop(line.phase), line.t_ns, facts=facts)
    for phase, begin_ns in open_.items():
        yield TraceSpan(RUN, "phases", phase, begin_ns, max(end_ns, begin_ns), facts={"error": "it did not end"})


def _faults(record: RunRecord, end_ns: int) -> Iterator[TraceSpan]:
    """A track a fault, as faults may overlap."""
    healed = {(one.outage.fault, one.outage.number): one for one in healings(record)}
    for outage in outages(record):
        facts: dict[str, str | int | float] = {"kind": outage.kind, "target": outage.target, "cycle": outage.number}
        name = f"{outage.kind} {outage.target}"
        heal_ns = end_ns if outage.healed_ns is None else min(outage.healed_ns, end_ns)
        begin_ns = outage.injected_ns
        yield TraceSpan(RUN, f"fault {outage.fault}", name, begin_ns, max(heal_ns, begin_ns), facts=facts)
        back_ns = healed[outage.fault, outage.number].goodput.ns
        if back_ns:
            until, track = begin_ns + round(back_ns), f"recovery {outage.fault}"
            yield TraceSpan(RUN, track, f"until goodput is back: {name}", begin_ns, until, facts=facts)


def _steps(record: RunRecord, left_out: list[str]) -> Iterator[TraceSpan]:
    for job, steps in steps_by_job(record).items():
        shown: list[JobStep] = steps
        if len(steps) > MOST_STEPS:
            shown = sorted(sorted(steps, key=lambda step: -step.duration_ns)[:SLOWEST], key=lambda step: step.begin_ns)
            left_out.append(f"{len(steps) - SLOWEST} of {len(steps)} steps of {job}, all but the slowest")
        for step in shown:
            yield TraceSpan(
                RUN, f"steps {job}", f"step {step.index}", step.begin_ns, step.end_ns, facts={"bytes": step.bytes}
            )


def _ports(record: RunRecord, end_ns: int) -> Iterator[TraceSpan]:
    """When a host took a port of its own for down."""
    down: dict[tuple[str, int], int] = {}
    for change in record.port_changes:
        if change.peer:
            continue
        key = change.host, change.plane
        if change.state != "UP":
            down.setdefault(key, change.t_ns)
        elif key in down:
            yield TraceSpan(change.host, f"port {change.plane}", "not up", down.pop(key), change.t_ns)
    for (host, plane), begin_ns in down.items():
        yield TraceSpan(host, f"port {plane}", "not up", begin_ns, max(end_ns, begin_ns))


def _stalls(record: RunRecord, end_ns: int) -> Iterator[TraceSpan]:
    """A track a QP."""
    for stall in record.stalls:
        end = max(end_ns if stall.end_ns is None else stall.end_ns, stall.begin_ns)
        yield TraceSpan(
            stall.host, f"QP {stall.qp}", "delivers nothing", stall.begin_ns, end, facts={"peer": stall.peer}
        )


def _ev_moments(record: RunRecord) -> Iterator[TraceMoment]:
    for change in record.ev_changes:
        name = _BAD if change.new == ASSUMED_BAD else _BACK if change.restored else f"EV {change.new}"
        facts: dict[str, str | int | float] = {"peer": change.peer, "plane": change.plane, "uplink": change.uplink}
        yield TraceMoment(change.host, "EVs", name, change.t_ns, facts=facts)


def _goodput(record: RunRecord) -> Iterator[CurvePoint]:
    """Of each host what was placed in its memory, in Mb/s between snapshots that are far enough apart."""
    hosts = max(len(record.scenario.host_names), 1)
    length_ns = max(record.end_ns - (record.start_ns or record.end_ns), 1)
    apart_ns = length_ns / max(MOST_OF_A_KIND // hosts, 2)
    by_host: dict[str, list[tuple[int, int]]] = {}
    for snapshot in record.snapshots.thinned(apart_ns):
        by_host.setdefault(snapshot.host, []).append((snapshot.t_ns, snapshot.counters.get("bytes_delivered", 0)))
    for host, points in by_host.items():
        for (then_ns, before), (now_ns, now) in pairwise(points):
            if now_ns > then_ns:
                yield CurvePoint(
                    host, "goodput Mb/s", then_ns, round(max(0, now - before) * 8e3 / (now_ns - then_ns), 3)
                )
