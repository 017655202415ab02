"""Rules about all entries of `workload` together: memory and QPs, and what expectations may say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.checks.expect import Expectation, did_you_mean
from testbed.checks.vocabulary import METRICS, Job
from testbed.scenario.flow_rules import broken_flow_rules
from testbed.scenario.parts import Parts
from testbed.scenario.step_rules import broken_step_rules
from testbed.scenario.wording import Mistake
from testbed.scenario.workloads import FlowSet, Workload, flow_set
from topos.plan import Plan
from topos.shape import Shape

MAX_QPS_IN_ALL = 1024
MAX_MEMORY_BYTES = 4 << 30
"""What all hosts register and prepare: they are on one machine."""
SHARES = ("fair_share", "balance")
"""Metrics that nothing is known of while a job of steps takes what it needs of the same ports."""


def broken_workload_rules(parts: Parts, plan: Plan) -> list[Mistake]:
    """Every rule that the readable entries break."""
    found = [*broken_step_rules(parts.steps, plan), *broken_flow_rules(parts.flows, plan)]
    workload = None if found else sound_workload(parts, plan.shape)
    return [*found, *(_amount(workload, plan.shape) if workload else ())]


def sound_workload(parts: Parts, shape: Shape) -> Workload | None:
    """What the readable entries come down to, when none of them breaks a rule; None when there are none."""
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


def workload_expectations(lines: Mapping[int, Expectation], workload: Workload) -> Iterator[Mistake]:
    """Metrics that this workload does not have, and names of flows that do not exist."""
    mine = [job for job, there in ((Job.TRAIN, workload.steps), (Job.FLOWS, workload.flows)) if there]
    for index, line in lines.items():
        where = ("expect", index)
        job = line.metric.job
        if job is not None and job not in mine:
            others = [metric.name for metric in METRICS.values() if metric.job in mine]
            text = f"{line.metric.name} is known of {job.value} only"
            yield Mistake(where, f"{text}; this workload has {', '.join(others)}")
        elif line.metric.name in SHARES and workload.steps:
            yield Mistake(where, f"{line.metric.name} is not known while a job of steps takes its part of the ports")
        elif workload.flows and (job is Job.FLOWS or not workload.steps):
            yield from _of_flows(where, line, workload.flows)
        if line.window.flows and workload.flows is None:
            yield Mistake(where, "a job of steps has no flows to choose from", column=line.window.flows_column)


def _of_flows(where: tuple[str | int, ...], line: Expectation, flows: FlowSet) -> Iterator[Mistake]:
    name = line.window.flows
    chosen = flows.named(name) if name else flows.flows
    if not chosen:
        hint = did_you_mean(name, flows.names) or f"; there are {', '.join(flows.names[:8])}"
        yield Mistake(where, f"there are no flows named {name!r}{hint}", column=line.window.flows_column)
        return
    kind = "greedy" if line.metric.name == "goodput" else line.metric.flows
    fitting = [flow for flow in chosen if kind is None or flow.greedy is (kind == "greedy")]
    if not fitting:
        lacking = "`latency` entries" if kind == "latency" else "flows that send without a pause"
        yield Mistake(where, f"{line.metric.name} is known of {lacking} only")
    elif line.metric.name == "balance" and len(fitting) == 1:
        yield Mistake(where, "balance compares flows with each other, and this is one flow")
