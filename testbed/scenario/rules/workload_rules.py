"""Rules about all entries of `workload` together: memory and QPs."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.scenario.model.arrival_models import PoissonEntry
from mrc_testbed.testbed.scenario.model.workloads import Workload, flow_set, workload_of
from mrc_testbed.testbed.scenario.rules.flow_rules import broken_flow_rules
from mrc_testbed.testbed.scenario.rules.job_rules import broken_job_rules, names_of_flows_too
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.rules.step_rules import broken_step_rules
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import Shape

MAX_QPS_IN_ALL = 1024
MAX_MEMORY_BYTES = 4 << 30
"""Memory of all hosts: they share one machine."""


def broken_workload_rules(file: Readable, plan: Plan) -> list[Mistake]:
    """All violations in the readable entries."""
    found = [
        *broken_step_rules(file.steps, plan, file.scenario.world),
        *broken_flow_rules(file.flows, plan, streams=file.scenario.transport.of_kernel),
    ]
    found = found or [*_nothing_drawn(file, plan.shape)]
    found = found or [*broken_job_rules(file.steps, plan), *_shared_names(file, plan.shape)]
    workload = None if found else sound_workload(file, plan.shape)
    return [*found, *(_amount(workload, plan.shape) if workload else ())]


def _nothing_drawn(file: Readable, shape: Shape) -> Iterator[Mistake]:
    """Random flows where a seed draws none, although some are expected."""
    for index, entry in file.flows.items():
        if isinstance(entry, PoissonEntry) and not entry.by_pair(shape, file.scenario.seed):
            wrong = f"no flow begins with the seed {file.scenario.seed}; write a longer time, or a higher load"
            yield Mistake(("workload", index, entry.kind, "for"), wrong)


def _shared_names(file: Readable, shape: Shape) -> Iterator[Mistake]:
    return names_of_flows_too(file.steps, flow_set(file.flows.values(), shape, file.scenario.seed).names)


def sound_workload(file: Readable, shape: Shape) -> Workload | None:
    """The workload of the readable entries, if none breaks a rule; None without entries."""
    workload = workload_of(file.steps.values(), file.flows.values(), shape, file.scenario.seed)
    return workload if workload.jobs or workload.flows else None


def _amount(workload: Workload, shape: Shape) -> Iterator[Mistake]:
    qps = memory = 0
    for job in workload.jobs:
        steps = job.steps(shape)
        qps, memory = qps + sum(1 for _ in steps.qps()), memory + steps.memory_bytes
    for flow in workload.flows.flows if workload.flows else ():
        qps, memory = qps + flow.qps, memory + flow.memory_bytes(shape)
    if qps > MAX_QPS_IN_ALL:
        yield Mistake(("workload",), f"{qps} QPs in all are more than {MAX_QPS_IN_ALL}")
    if memory > MAX_MEMORY_BYTES:
        needs = f"the hosts need {memory >> 20} MiB of memory for data, the limit is {MAX_MEMORY_BYTES >> 20} MiB"
        yield Mistake(("workload",), f"{needs}; use smaller sizes or messages, or fewer QPs")
