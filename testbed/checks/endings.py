"""Which ranks and flows came to their end. Pure."""

from __future__ import annotations

from mrc_testbed.testbed.checks.computation import computes
from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scope import hosts_of
from mrc_testbed.testbed.checks.windows import workload_ns
from mrc_testbed.testbed.expect import EVERYBODY, Scope, Window


@derived
def steps_by_rank(record: RunRecord) -> dict[str, int]:
    """How many steps each rank finished, warm-up included. Raises NoData when the workload never began."""
    workload_ns(record)
    done = {(one.host, one.step) for one in record.completions}
    return {
        host: sum((host, step) in done for step in range(wanted)) for host, wanted in wanted_by_rank(record).items()
    }


@derived
def wanted_by_rank(record: RunRecord) -> dict[str, int]:
    """How many steps each rank has to finish, warm-up included."""
    shape = record.scenario.shape()
    return {
        host: job.entry.total_steps
        for job in record.scenario.jobs
        if job.entry.total_steps  # not known of every program of the user
        for host in job.host_names(shape)
    }


def unfinished_ranks(record: RunRecord, scope: Scope = EVERYBODY) -> list[str]:
    """The ranks of a scope that did not finish all steps. Raises NoData when the workload never began."""
    done, wanted = steps_by_rank(record), wanted_by_rank(record)
    return [host for host in hosts_of(record, scope) if host in wanted and done[host] < wanted[host]]


@derived
def unended_flows(record: RunRecord) -> list[str]:
    """Names of flows that moved nothing, or had a QP whose last message did not arrive. Raises NoData when the
    workload never began."""
    workload_ns(record)
    last = {(flow, qp) for flow, qp, is_last in record.received.columns("flow", "qp", "last") if is_last}
    moved = {flow for flow, messages in record.received.columns("flow", "messages") if messages}
    return [
        flow.name
        for flow in record.scenario.flows.flows
        if flow.name not in moved or any((flow.name, number) not in last for number in range(flow.qps))
    ]


@computes("unfinished")
def unfinished(record: RunRecord, window: Window) -> float:
    """Ranks that did not finish all steps, and flows that did not end. At least 1 while senders still wait for
    acknowledgements. Of a job: its ranks. Raises NoData when the workload never began."""
    behind = len(unfinished_ranks(record, window.scope))
    if window.scope != EVERYBODY:
        return behind
    if record.scenario.job.flows:
        behind += len(unended_flows(record))
    return float(behind or not record.workload_done)
