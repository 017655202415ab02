"""Resolves `of h3`, `of h0->h4` or `of each host` in a record. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.checks.record import RunRecord
from testbed.expect import Scope, ScopeKind
from testbed.expect.vocabulary import By, Job, Metric
from testbed.workloads.flows import Flow
from topos.names import host_name


def hosts_of(record: RunRecord, scope: Scope) -> tuple[str, ...]:
    """The hosts whose events and counters a scope covers; for pairs the senders."""
    if scope.kind is ScopeKind.HOST:
        return (scope.name,)
    pairs = pairs_of(record, scope)
    return record.scenario.host_names if pairs is None else tuple(dict.fromkeys(name.split("->")[0] for name in pairs))


def pairs_of(record: RunRecord, scope: Scope) -> tuple[str, ...] | None:
    """The pairs (`h0->h4`) of a scope; None if it is not about pairs."""
    if scope.kind is ScopeKind.PAIR:
        return (scope.name,)
    if scope.kind is ScopeKind.GROUP:
        return tuple(flow.name for flow in record.scenario.flows.named(scope.name))
    return None


def belongs(record: RunRecord, scope: Scope) -> Callable[[str, str], bool]:
    """A predicate: does an observation of this host about its peer belong to the scope?"""
    if scope.kind is ScopeKind.HOST:
        return lambda host, peer: host == scope.name
    pairs = pairs_of(record, scope)
    return lambda host, peer: pairs is None or f"{host}->{peer}" in pairs


def about_flows(record: RunRecord, scope: Scope) -> bool:
    """Whether a figure that exists for steps and flows is computed from flows: for named flows, or without steps."""
    return record.scenario.job.steps is None or scope.kind in (ScopeKind.PAIR, ScopeKind.GROUP)


def flows_in(record: RunRecord, scope: Scope) -> tuple[Flow, ...]:
    """The flows of a scope; of a host those that it receives."""
    flows = record.scenario.flows.flows
    if scope.kind is ScopeKind.HOST:
        return tuple(flow for flow in flows if receiver(flow) == scope.name)
    pairs = pairs_of(record, scope)
    return flows if pairs is None else tuple(flow for flow in flows if flow.name in pairs)


def receiver(flow: Flow) -> str:
    """The host that a flow goes to."""
    return host_name(flow.dst)


def members(record: RunRecord, metric: Metric, scope: Scope) -> list[Scope]:
    """The members of `each`. For what flows deliver, only receiving hosts."""
    scenario = record.scenario
    if scope.kind is ScopeKind.EACH_FLOW:
        flows = (
            flow for flow in scenario.flows.flows if metric.flows is None or flow.greedy is (metric.flows == "greedy")
        )
        return _scopes(ScopeKind.PAIR, (flow.name for flow in flows))
    if By.FLOW not in metric.by:
        return _scopes(ScopeKind.HOST, scenario.ranks if metric.job is Job.TRAIN else scenario.host_names)
    of_flows = scenario.job.flows and not (metric.flows and scenario.ranks)
    receivers = map(receiver, scenario.flows.flows) if of_flows else ()
    return _scopes(ScopeKind.HOST, dict.fromkeys([*scenario.ranks, *receivers]))


def _scopes(kind: ScopeKind, names: Iterable[str]) -> list[Scope]:
    return [Scope(kind, name) for name in names]
