"""How each job and flow of a run ended: by itself, by a fault, or stopped by the testbed. Pure.

A failed QP ends the job or the flow that it belongs to, and no other. What the run stopped might have ended well, or
not: nothing is known of its end. Only a time limit that the scenario itself writes says that it should have ended by
then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mrc_testbed.testbed.evidence.events import Notice
from mrc_testbed.testbed.rundir.tables import STOPPED
from mrc_testbed.testbed.scenario.model.jobs import NamedJob

if TYPE_CHECKING:
    from mrc_testbed.testbed.checks.record import RunRecord


ANY = ""
"""A QP of no known job or flow: its failure may be behind each end."""


class How(StrEnum):
    """The ways to end."""

    ITSELF = "by itself"
    FAULT = "by a fault"
    STOPPED = "stopped by the testbed"


@dataclass(frozen=True, slots=True)
class End:
    """The end of a job, a flow or a program. `error`: of the QP that failed; `why`: why it was stopped, or how a
    program failed; `overdue`: a time limit that the scenario writes had passed."""

    name: str
    how: How
    t_ns: int
    why: str = ""
    error: Notice | None = None
    overdue: bool = False

    @property
    def unfinished(self) -> bool | None:
        """Whether it failed, or did not come to its end; None: not known, for the testbed stopped it."""
        return None if self.how is How.STOPPED and not self.overdue else bool(self.why) or self.how is not How.ITSELF


class Stop(NamedTuple):
    """Why and when the testbed stops what still goes on."""

    t_ns: int
    why: str
    overdue: bool


def ends_of(record: RunRecord) -> dict[str, End]:
    """By name the end of each job and flow of a workload that began."""
    errors = {} if record.workload_done else _first_errors(record)
    done = {job.name: _steps_end(record, job) for job in record.scenario.jobs} | dict(_flow_ends(record, errors))
    stop = stop_of(record)
    return {name: _end(name, t_ns, errors.get(name) or errors.get(ANY), stop) for name, t_ns in done.items()}


def _end(name: str, done_ns: int | None, error: Notice | None, stop: Stop) -> End:
    if done_ns is not None:
        return End(name, How.ITSELF, done_ns)
    if error:
        return End(name, How.FAULT, error.t_ns, error=error)
    return End(name, How.STOPPED, stop.t_ns, stop.why, overdue=stop.overdue)


def stop_of(record: RunRecord) -> Stop:
    """Why and when the run ended what still went on."""
    if record.workload_done:
        return Stop(record.last_ns, "its last rows are missing", True)
    failed = [line for line in record.history if line.op in ("workload", "interrupt") and line.type == "fail"]
    if not failed:
        return Stop(record.last_ns, "the run was cut off", False)
    limit = failed[0].op == "workload" and not record.interrupted
    return Stop(record.last_ns, failed[0].error, limit and record.scenario.given_time_limit_ns is not None)


def _first_errors(record: RunRecord) -> dict[str, Notice]:
    """The first QP error of each job and flow, and of ANY where it is not known whose QP it was."""
    workload, shape = record.scenario.job, record.scenario.shape()
    found: dict[str, Notice] = {}
    for seen in sorted(record.qp_errors, key=lambda seen: seen.t_ns):
        found.setdefault(workload.owner_of(shape, seen.qp, seen.host, seen.peer) or ANY, seen)
    return found


def _steps_end(record: RunRecord, job: NamedJob) -> int | None:
    """When the last rank of a job finished its last step, or its last program; None if one did not."""
    ranks = set(job.host_names(record.scenario.shape()))
    if not job.entry.total_steps:
        known = (one for one in record.programs if one.killed != STOPPED or record.workload_done)
        ends = {one.host: one.end_ns for one in known if one.host in ranks}
    else:
        last = job.entry.total_steps - 1
        ends = {one.host: one.end_ns for one in record.completions if one.host in ranks and one.step == last}
    return max(ends.values()) if ends.keys() == ranks else None


def _flow_ends(record: RunRecord, failed: Container[str]) -> Iterator[tuple[str, int | None]]:
    """When the last message of each flow arrived; None where one of a QP did not, or a QP failed before its sender
    knew. Flows that moved nothing have not ended."""
    flows = record.scenario.job.flows.flows if record.scenario.job.flows else ()
    ended: dict[tuple[str, int], int] = {}
    arrived: Counter[str] = Counter()
    for flow, qp, end_ns, messages, last in record.received.columns("flow", "qp", "end_ns", "messages", "last"):
        arrived[flow] += messages
        if last:
            ended[flow, qp] = end_ns
    known = Counter(record.messages.column("flow")) + Counter(record.flow_times.column("flow")) if failed else Counter()
    for flow in flows:
        times = [ended.get((flow.name, number)) for number in range(flow.qps)]
        wanted = len(flow.arrivals) or arrived[flow.name]
        whole = arrived[flow.name] and (flow.name not in failed or known[flow.name] >= wanted)
        yield flow.name, max(times) if whole and None not in times else None  # type: ignore[type-var]
