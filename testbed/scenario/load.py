"""How many data packets a second a workload asks of the machine at most. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.scenario.models import Scenario
from testbed.workloads.fairness import max_min_shares
from testbed.workloads.flows import Flow
from topos.shape import Shape


def offered_pps(scenario: Scenario) -> float:
    """Ranks of jobs of steps send at line rate, flows what is fair, of those that are under way together at any time;
    all of them never more than all hosts can."""
    shape = scenario.shape()
    of_ranks = len(scenario.ranks) * shape.planes * shape.port_pps
    flows = scenario.job.flows.flows if scenario.job.flows else ()
    return min(shape.fabric_pps, of_ranks + _most_pps(shape, [flow for flow in flows if flow.greedy]))


def _most_pps(shape: Shape, flows: Iterable[Flow]) -> float:
    """Of the moments at which a flow begins, that with the most."""
    flows = list(flows)
    moments = {flow.start_ns for flow in flows}
    return max(
        (_together_pps(shape, [flow for flow in flows if _goes_on(flow, t_ns)]) for t_ns in moments), default=0.0
    )


def _goes_on(flow: Flow, t_ns: int) -> bool:
    return flow.start_ns <= t_ns and (flow.stop_ns is None or t_ns < flow.stop_ns)


def _together_pps(shape: Shape, flows: Iterable[Flow]) -> float:
    shares = max_min_shares(shape, {flow.name: flow.demand for flow in flows})
    return sum(shares.values()) / shape.payload_bytes
