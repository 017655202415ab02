"""Which ranks and flows came to their end. Pure."""

from __future__ import annotations

from testbed.checks.computation import computes
from testbed.checks.derived import derived
from testbed.checks.record import RunRecord
from testbed.checks.windows import workload_ns
from testbed.expect import Window


@derived
def steps_by_rank(record: RunRecord) -> dict[str, int]:
    """How many steps each rank finished, warm-up included. Raises NoData when the workload never began."""
    workload_ns(record)
    steps = range(record.scenario.train.total_steps)
    done = {(one.host, one.step) for one in record.completions}
    return {host: sum((host, step) in done for step in steps) for host in record.scenario.ranks}


@derived
def unended_flows(record: RunRecord) -> list[str]:
    """Names of flows that moved nothing, or of which a QP's last message did not arrive. Raises NoData when the
    workload never began."""
    workload_ns(record)
    last = {(row.flow, row.qp) for row in record.received if row.last}
    moved = {row.flow for row in record.received if row.messages}
    return [
        flow.name
        for flow in record.scenario.flows.flows
        if flow.name not in moved or any((flow.name, number) not in last for number in range(flow.qps))
    ]


@computes("unfinished")
def unfinished(record: RunRecord, window: Window) -> float:
    """Ranks that did not finish all steps, and flows that did not end. At least 1 while senders still wait for
    acknowledgements. Raises NoData when the workload never began."""
    workload_ns(record)
    found = 0
    if record.scenario.job.steps:
        found += sum(count < record.scenario.train.total_steps for count in steps_by_rank(record).values())
    if record.scenario.job.flows:
        found += len(unended_flows(record))
    return float(found or not record.workload_done)
