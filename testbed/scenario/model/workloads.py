"""The kinds of `workload` as models, resolved into jobs of steps, a set of flows, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from pydantic import Field

from mrc_testbed.testbed.scenario.model.arrival_models import ARRIVAL_KINDS, PoissonEntry, TraceEntry
from mrc_testbed.testbed.scenario.model.flow_models import FLOW_KINDS, FlowEntry, Incast, Latency, Permutation, Write
from mrc_testbed.testbed.scenario.model.graph_model import GraphEntry
from mrc_testbed.testbed.scenario.model.jobs import NamedJob, named_jobs
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.model.step_models import (
    STEP_KINDS,
    AllGatherEntry,
    AllreduceEntry,
    AllToAllEntry,
    PipelineEntry,
    ReduceScatterEntry,
    SendRecvEntry,
    StepEntry,
    Train,
)
from mrc_testbed.testbed.scenario.text.fields import Model
from mrc_testbed.testbed.scenario.text.one_key import OneKey
from mrc_testbed.testbed.workloads.flows import Flow, flows_ns, plan_flows
from mrc_testbed.testbed.workloads.job import JobPlan, merged, only_hosts
from mrc_testbed.topos.names import host_name
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import Shape

WORKLOAD_KINDS: Mapping[str, type[Model]] = {
    **STEP_KINDS,
    GraphEntry.kind: GraphEntry,
    Programs.kind: Programs,
    **FLOW_KINDS,
    **ARRIVAL_KINDS,
}
"""The kinds by their key."""


class WorkloadItem(OneKey):
    """One entry of `workload`: exactly one of its keys."""

    empty: ClassVar[str] = "has no workload kind"

    train: Train | None = Field(
        default=None, description="a training job", examples=["{steps: 28, compute: 100ms, allreduce: 4MiB}"]
    )
    allreduce: AllreduceEntry | None = Field(
        default=None, description="ring all-reduce by itself", examples=["{size: 4MiB, iterations: 20}"]
    )
    reduce_scatter: ReduceScatterEntry | None = Field(
        default=None,
        alias="reduce-scatter",
        description="first half of an allreduce by itself",
        examples=["{size: 4MiB, iterations: 20}"],
    )
    all_gather: AllGatherEntry | None = Field(
        default=None,
        alias="all-gather",
        description="second half of an allreduce by itself",
        examples=["{size: 4MiB, iterations: 20}"],
    )
    sendrecv: SendRecvEntry | None = Field(
        default=None, description="each host sends to the next", examples=["{size: 4MiB, iterations: 20}"]
    )
    all_to_all: AllToAllEntry | None = Field(
        default=None,
        alias="all-to-all",
        description="each host sends to every other",
        examples=["{size: 4MiB, iterations: 20}"],
    )
    pipeline: PipelineEntry | None = Field(
        default=None,
        description="micro-batches go through all hosts",
        examples=["{size: 256KiB, micro_batches: 4, iterations: 20}"],
    )
    graph: GraphEntry | None = Field(
        default=None, description="what each rank computes, sends and waits for", examples=["{file: step.jsonl}"]
    )
    programs: Programs | None = Field(
        default=None, description="programs of your own, one a host", examples=["{command: python3 train.py}"]
    )
    write: Write | None = Field(
        default=None, description="flows between pairs of hosts", examples=["{from: h0, to: h4, for: 10s}"]
    )
    latency: Latency | None = Field(
        default=None, description="one message at a time", examples=["{from: h0, to: h4, iterations: 1000}"]
    )
    permutation: Permutation | None = Field(
        default=None, description="every host sends to one host", examples=["{for: 10s}"]
    )
    incast: Incast | None = Field(
        default=None, description="several hosts send to one", examples=["{to: h4, from: [h0, h1], for: 10s}"]
    )
    trace: TraceEntry | None = Field(
        default=None, description="flows of a file, each with its begin and size", examples=["{file: flows.csv}"]
    )
    poisson: PoissonEntry | None = Field(
        default=None,
        description="flows that begin at random, with sizes of a distribution",
        examples=["{sizes: websearch, load: 50%, for: 10s}"],
    )

    @property
    def steps(self) -> StepEntry | None:
        """The entry, where it is a job of steps."""
        entry = self.chosen[1]
        return entry if isinstance(entry, StepEntry) else None

    @property
    def flows(self) -> FlowEntry | None:
        """The entry, where it is one of flows."""
        entry = self.chosen[1]
        return entry if isinstance(entry, FlowEntry) else None


@dataclass(frozen=True, slots=True)
class NamedPrograms:
    """A job that is programs of the user."""

    name: str
    entry: Programs

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that run one, by rank."""
        return self.entry.host_names(shape)

    def all_host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that they reach."""
        return self.entry.all_host_names(shape)

    @property
    def figures(self) -> tuple[str, ...]:
        """What they print, by name."""
        return tuple(self.entry.figures)


@dataclass(frozen=True, slots=True)
class FlowSet:
    """All flows of a scenario."""

    flows: tuple[Flow, ...]

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that send or receive."""
        return tuple(map(host_name, sorted({host for flow in self.flows for host in (flow.src, flow.dst)})))

    def pairs(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Who sends to whom."""
        yield from ((host_name(flow.src), host_name(flow.dst)) for flow in self.flows)

    def estimate_ns(self, shape: Shape) -> int:
        """How long the workload takes without faults, in ns."""
        return flows_ns(shape, self.flows)

    def plan_job(self, plan: Plan) -> JobPlan:
        """The program of each rank, and the QPs between them."""
        return plan_flows(plan.shape, self.flows)

    def named(self, name: str) -> tuple[Flow, ...]:
        """The flows of a group, or the one with that name; none if it is unknown."""
        return tuple(flow for flow in self.flows if name == flow.name or name in flow.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that `named` knows: groups first."""
        groups = dict.fromkeys(group for flow in self.flows for group in flow.groups)
        return (*groups, *(flow.name for flow in self.flows))


def flow_set(entries: Iterable[FlowEntry], shape: Shape, seed: int) -> FlowSet:
    """Every flow of several entries. Raises ValueError for names that are not hosts."""
    return FlowSet(tuple(flow for entry in entries for flow in entry.flows(shape, seed)))


@dataclass(frozen=True)
class Workload:
    """All entries resolved: jobs of steps, each on hosts of its own, and flows, in parallel."""

    jobs: tuple[NamedJob, ...]
    flows: FlowSet | None

    @property
    def programs(self) -> tuple[NamedPrograms, ...]:
        """The jobs that are programs of the user."""
        return tuple(NamedPrograms(job.name, job.entry) for job in self.jobs if isinstance(job.entry, Programs))

    def job_named(self, name: str) -> NamedJob | None:
        """The job of steps with that name."""
        return next((job for job in self.jobs if job.name == name), None)

    def owner_of(self, shape: Shape, qp: str, *ends: str) -> str:
        """The name of the job or the flow that a QP belongs to, by its name and the hosts at its ends, the one that
        tells of it first; empty where there is none."""
        pairs = {qp.rpartition("/")[0]} if qp else {"->".join(ends), "->".join(ends[::-1])}
        flows = (flow.name for flow in (self.flows.flows if self.flows else ()) if flow.name in pairs)
        jobs = (job.name for job in self.jobs if ends[0] in job.entry.all_host_names(shape))
        return next(chain(flows, jobs), "")

    def ranks(self, shape: Shape) -> tuple[str, ...]:
        """The hosts of all jobs of steps, by rank."""
        return tuple(name for job in self.jobs for name in job.host_names(shape))

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that take part: by rank, then those that only send or receive."""
        reached = (name for job in self.programs for name in job.all_host_names(shape))
        others = self.flows.host_names(shape) if self.flows else ()
        return tuple(dict.fromkeys((*self.ranks(shape), *reached, *others)))

    def pairs(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Who sends to whom."""
        for job in self.jobs:
            yield from ((host_name(qp.src), host_name(qp.dst)) for qp in job.steps(shape).qps())
        yield from self.flows.pairs(shape) if self.flows else ()

    def estimate_ns(self, shape: Shape) -> int:
        """Clean duration: the longest of all jobs and flows, each as if alone."""
        longest = max((job.steps(shape).clean_ns(shape) for job in self.jobs), default=0)
        return max(longest, self.flows.estimate_ns(shape) if self.flows else 0)

    def plan_job(self, plan: Plan) -> JobPlan:
        """The program of each rank, and the QPs between them."""
        plans = [job.steps(plan.shape).plan() for job in self.jobs]
        flows = [self.flows.plan_job(plan)] if self.flows else []
        reached = [only_hosts(job.entry.job(plan.shape).network) for job in self.programs]
        return merged([*plans, *flows, *reached])


def workload_of(steps: Iterable[StepEntry], flows: Iterable[FlowEntry], shape: Shape, seed: int) -> Workload:
    """Several entries resolved. Raises ValueError for flows between names that are not hosts."""
    found = flow_set(flows, shape, seed)
    return Workload(named_jobs(steps, shape), found if found.flows else None)
