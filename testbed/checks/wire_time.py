"""Was anything faster than the wire allows? Steps and messages against their earliest times. Pure.

A step takes from the moment at which the last rank begins it until the last rank ends it; a message, from the write
until its acknowledgement is back. Both have an earliest time that follows from rates, path lengths and T alone
(testbed/workloads/estimate.py). Faults, queues and other traffic only make them later. Plain shapers let packets go
early, by a known time: on them the wire is that of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.steps import finished_by_all
from mrc_testbed.testbed.workloads.estimate import eager, earliest_completion_ns, links_between
from mrc_testbed.topos.shape import Shape


@dataclass(frozen=True, slots=True)
class WireTime:
    """Something that was sent, how long it took, and the least that the wire takes for it."""

    what: str
    took_ns: float
    earliest_ns: float

    @property
    def ahead(self) -> float:
        """By which part of its earliest time it was too fast; 0 when it was not."""
        return max(0.0, 1 - self.took_ns / self.earliest_ns) if self.earliest_ns > 0 else 0.0


def wire_times(record: RunRecord) -> Iterator[WireTime]:
    """Every step that all ranks ended, those of a warm-up too, of each flow the fastest message that was acknowledged,
    in the order of their ends, and of each pair in a trace its fastest flow."""
    if record.scenario.jobs:
        yield from _steps(record)
    if record.scenario.job.flows:
        yield from _messages(record)
        yield from _flows(record)


def _wire(record: RunRecord) -> Shape:
    shape = record.scenario.shape()
    plain = record.environment.get("switch_ports") == "plain shaper"
    return eager(shape) if plain else shape


def _steps(record: RunRecord) -> Iterator[WireTime]:
    shape, several = _wire(record), len(record.scenario.jobs) > 1
    for job in record.scenario.jobs:
        earliest_ns = job.steps(shape).earliest_step_ns(shape)
        of_job = f" of {job.name}" if several else ""
        for step, done_by in enumerate(finished_by_all(record, job)):
            begin_ns = max(done.begin_ns for done in done_by)
            end_ns = max(done.end_ns for done in done_by)
            yield WireTime(f"step {step}{of_job}", end_ns - begin_ns, earliest_ns)


def _messages(record: RunRecord) -> Iterator[WireTime]:
    shape = _wire(record)
    flows = {flow.name: flow for flow in record.scenario.flows.flows}
    earliest_ns = {
        name: earliest_completion_ns(shape, flow.message_bytes, links_between(shape, flow.src, flow.dst))
        for name, flow in flows.items()
    }
    fastest: dict[str, tuple[int, int]] = {}
    for place, (flow, took_ns) in enumerate(record.messages.columns("flow", "duration_ns")):
        if flow not in fastest or took_ns < fastest[flow][0]:
            fastest[flow] = took_ns, place
    for flow, (took_ns, _) in sorted(fastest.items(), key=lambda one: one[1][1]):
        if flow in earliest_ns:  # else it is not of this scenario
            yield WireTime(f"a message of {flow}", took_ns, earliest_ns[flow])


def _flows(record: RunRecord) -> Iterator[WireTime]:
    """Of each pair in a trace the flow that was fastest for its size."""
    shape = _wire(record)
    links = {flow.name: links_between(shape, flow.src, flow.dst) for flow in record.scenario.flows.flows}
    fastest: dict[str, WireTime] = {}
    for flow, size, took_ns in record.flow_times.columns("flow", "bytes", "duration_ns"):
        if flow in links:
            one = WireTime(f"a flow {flow}", took_ns, earliest_completion_ns(shape, size, links[flow]))
            if flow not in fastest or one.took_ns * fastest[flow].earliest_ns < fastest[flow].took_ns * one.earliest_ns:
                fastest[flow] = one
    yield from fastest.values()
