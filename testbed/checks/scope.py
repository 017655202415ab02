"""Resolves `of h3`, `of h0->h4`, `of job-a` or `of each host` in a record. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.ends import End
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.expect import Scope, ScopeKind
from mrc_testbed.testbed.expect.vocabulary import By, Job, Metric
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.topos.names import host_name


def hosts_of(record: RunRecord, scope: Scope) -> tuple[str, ...]:
    """The hosts whose events and counters a scope covers; for pairs the senders, of a job its ranks."""
    if scope.kind is ScopeKind.HOST:
        return (scope.name,)
    if job := _job_of(record, scope):
        return job.host_names(record.scenario.shape())
    pairs = pairs_of(record, scope)
    return record.scenario.host_names if pairs is None else tuple(dict.fromkeys(name.split("->")[0] for name in pairs))


def pairs_of(record: RunRecord, scope: Scope) -> tuple[str, ...] | None:
    """The pairs (`h0->h4`) of a scope; None if it is not about pairs."""
    if scope.kind is ScopeKind.PAIR:
        return (scope.name,)
    if scope.kind is ScopeKind.GROUP and not _job_of(record, scope):
        return tuple(flow.name for flow in record.scenario.flows.named(scope.name))
    return None


@derived
def job_by_host(record: RunRecord) -> Mapping[str, NamedJob]:
    """The job of each host that is a rank of one."""
    shape = record.scenario.shape()
    return {host: job for job in record.scenario.jobs for host in job.host_names(shape)}


def belongs(record: RunRecord, scope: Scope) -> Callable[[str, str], bool]:
    """A predicate: does an observation of this host about its peer belong to the scope?"""
    if scope.kind is ScopeKind.HOST or _job_of(record, scope):
        hosts = hosts_of(record, scope)
        return lambda host, peer: host in hosts
    pairs = pairs_of(record, scope)
    return lambda host, peer: pairs is None or f"{host}->{peer}" in pairs


def about_flows(record: RunRecord, scope: Scope) -> bool:
    """Whether a figure that exists for steps and flows is computed from flows: for named flows, or without steps."""
    if not record.scenario.jobs or scope.kind is ScopeKind.PAIR:
        return True
    return scope.kind is ScopeKind.GROUP and not _job_of(record, scope)


def scope_of(job: str) -> Scope:
    """The scope that a job of steps is, by its name."""
    return Scope(ScopeKind.GROUP, job)


def _job_of(record: RunRecord, scope: Scope) -> NamedJob | None:
    """The job of steps that a scope names."""
    return record.scenario.job.job_named(scope.name) if scope.kind is ScopeKind.GROUP else None


def flows_in(record: RunRecord, scope: Scope) -> tuple[Flow, ...]:
    """The flows of a scope; of a host those that it receives."""
    flows = record.scenario.job.flows.flows if record.scenario.job.flows else ()
    if scope.kind is ScopeKind.HOST:
        return tuple(flow for flow in flows if receiver(flow) == scope.name)
    pairs = pairs_of(record, scope)
    return flows if pairs is None else tuple(flow for flow in flows if flow.name in pairs)


def ends_in(record: RunRecord, scope: Scope) -> list[End]:
    """How the jobs and flows of a scope ended; of a host its job, and the flows that it receives."""
    if job := _job_of(record, scope):
        return [record.ends[job.name]]
    flows = [record.ends[flow.name] for flow in flows_in(record, scope)]
    if pairs_of(record, scope) is not None:
        return flows
    mine, shape = set(hosts_of(record, scope)), record.scenario.shape()
    return [
        *(record.ends[job.name] for job in record.scenario.jobs if not mine.isdisjoint(job.host_names(shape))),
        *flows,
    ]


def receiver(flow: Flow) -> str:
    """The host that a flow goes to."""
    return host_name(flow.dst)


def members(record: RunRecord, metric: Metric, scope: Scope) -> list[Scope]:
    """The members of `each`. For what flows deliver, only receiving hosts."""
    scenario = record.scenario
    if scope.kind is ScopeKind.EACH_JOB:
        return _scopes(ScopeKind.GROUP, (job.name for job in scenario.jobs))
    if scope.kind is ScopeKind.EACH_FLOW:
        flows = (flow for flow in scenario.flows.flows if metric.flows is None or flow.measures == metric.flows)
        return _scopes(ScopeKind.PAIR, (flow.name for flow in flows))
    if By.FLOW not in metric.by:
        return _scopes(ScopeKind.HOST, scenario.ranks if metric.job is Job.TRAIN else scenario.host_names)
    of_flows = scenario.job.flows and not (metric.flows and scenario.ranks)
    receivers = map(receiver, scenario.flows.flows) if of_flows else ()
    return _scopes(ScopeKind.HOST, dict.fromkeys([*scenario.ranks, *receivers]))


def _scopes(kind: ScopeKind, names: Iterable[str]) -> list[Scope]:
    return [Scope(kind, name) for name in names]
