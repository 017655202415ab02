"""Rules about all entries of `workload` together: memory and QPs."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario.flow_rules import broken_flow_rules
from testbed.scenario.parts import Parts
from testbed.scenario.step_rules import broken_step_rules
from testbed.scenario.wording import Mistake
from testbed.scenario.workloads import Workload, flow_set
from topos.plan import Plan
from topos.shape import Shape

MAX_QPS_IN_ALL = 1024
MAX_MEMORY_BYTES = 4 << 30
"""Memory of all hosts: they share one machine."""


def broken_workload_rules(parts: Parts, plan: Plan) -> list[Mistake]:
    """All violations in the readable entries."""
    found = [*broken_step_rules(parts.steps, plan), *broken_flow_rules(parts.flows, plan)]
    workload = None if found else sound_workload(parts, plan.shape)
    return [*found, *(_amount(workload, plan.shape) if workload else ())]


def sound_workload(parts: Parts, shape: Shape) -> Workload | None:
    """The workload of the readable entries, if none breaks a rule; None without entries."""
    steps = next(iter(parts.steps.values()), None)
    flows = flow_set(parts.flows.values(), shape) if parts.flows else None
    return Workload(steps, flows) if steps or flows else None


def _amount(workload: Workload, shape: Shape) -> Iterator[Mistake]:
    qps = memory = 0
    if workload.steps:
        job = workload.steps.job(shape)
        qps, memory = sum(1 for _ in job.qps()), job.memory_bytes
    for flow in workload.flows.flows if workload.flows else ():
        qps, memory = qps + flow.qps, memory + flow.memory_bytes(shape)
    if qps > MAX_QPS_IN_ALL:
        yield Mistake(("workload",), f"{qps} QPs in all are more than {MAX_QPS_IN_ALL}")
    if memory > MAX_MEMORY_BYTES:
        needs = f"the hosts need {memory >> 20} MiB of memory for data, the limit is {MAX_MEMORY_BYTES >> 20} MiB"
        yield Mistake(("workload",), f"{needs}; use smaller sizes or messages, or fewer QPs")
