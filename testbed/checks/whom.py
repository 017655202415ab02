"""Whose figures count: what `of h3`, `of h0->h4` or `of each host` means in a record. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.checks.expect import Scope, Whom
from testbed.checks.record import RunRecord
from testbed.checks.vocabulary import By, Metric
from testbed.scenario import FlowSet


def hosts_of(record: RunRecord, scope: Scope) -> tuple[str, ...]:
    """The hosts whose events and counters are about a scope: of pairs the senders."""
    if scope.whom is Whom.HOST:
        return (scope.name,)
    pairs = pairs_of(record, scope)
    return record.scenario.host_names if pairs is None else tuple(dict.fromkeys(name.split("->")[0] for name in pairs))


def pairs_of(record: RunRecord, scope: Scope) -> tuple[str, ...] | None:
    """The pairs (`h0->h4`) of a scope; None where it is not about pairs."""
    if scope.whom is Whom.PAIR:
        return (scope.name,)
    if scope.whom is Whom.GROUP:
        return tuple(flow.name for flow in record.scenario.flows.named(scope.name))
    return None


def belongs(record: RunRecord, scope: Scope) -> Callable[[str, str], bool]:
    """The predicate "what this host saw of its peer is among what was asked for"."""
    if scope.whom is Whom.HOST:
        return lambda host, peer: host == scope.name
    pairs = pairs_of(record, scope)
    return lambda host, peer: pairs is None or f"{host}->{peer}" in pairs


def flows_in(record: RunRecord, scope: Scope) -> frozenset[str]:
    """Names of the flows of a scope: of a host those that it receives."""
    flows = record.scenario.flows.flows
    if scope.whom is Whom.HOST:
        return frozenset(flow.name for flow in flows if flow.name.endswith(f"->{scope.name}"))
    pairs = pairs_of(record, scope)
    return frozenset(flow.name for flow in flows) if pairs is None else frozenset(pairs)


def members(record: RunRecord, metric: Metric, scope: Scope) -> list[Scope]:
    """What `each` stands for, one by one. Of what flows deliver, only those hosts are asked that receive something."""
    job = record.scenario.job
    if scope.whom is Whom.EACH_FLOW:
        return _scopes(Whom.PAIR, (flow.name for flow in record.scenario.flows.flows))
    if isinstance(job, FlowSet) and By.FLOW in metric.by:
        return _scopes(Whom.HOST, dict.fromkeys(flow.name.split("->")[1] for flow in job.flows))
    return _scopes(Whom.HOST, record.scenario.host_names)


def _scopes(whom: Whom, names: Iterable[str]) -> list[Scope]:
    return [Scope(whom, name) for name in names]
