"""What a workload asks of the machine at most. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.workloads.arrivals import PairArrivals, most_sending
from mrc_testbed.testbed.workloads.fairness import line_rate, max_min_shares
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.testbed.workloads.steps import StepJob
from mrc_testbed.topos.cost import SWITCHES, Load
from mrc_testbed.topos.shape import Shape

_SECOND_NS = 10**9
_OWN = 0.98
"""Of what a flow's own host would let it send: a flow with less waits inside the network."""


def offered_load(scenario: Scenario) -> Load:
    """Ranks of jobs of steps send as fast as their busiest part needs, flows what is fair, of those that are under way
    together at any time; all of them never more than their hosts can. Ranks pause while they wait for each other, hosts
    of flows do not."""
    shape = scenario.shape()
    jobs = [job.steps(shape) for job in scenario.jobs]
    sending = sum(len(steps.hosts) * steps.most_busy(shape) for steps in jobs)
    of_ranks = sending * shape.planes * shape.port_pps
    flows = _busiest(shape, [flow for flow in (scenario.job.flows.flows if scenario.job.flows else ()) if flow.greedy])
    arriving = [flow for flow in (scenario.job.flows.flows if scenario.job.flows else ()) if flow.arrivals]
    pps, congested_pps = _pps(shape, flows)
    pps += _arriving_pps(shape, arriving)
    flows += arriving
    of_flows = {host for flow in flows for host in (flow.src, flow.dst)}
    hosts = of_flows.union(*(steps.hosts for steps in jobs))
    most_pps = len(hosts) * shape.planes * shape.port_pps
    pausing = max(0.0, len(hosts) - len(of_flows) - sending)
    return Load(min(of_ranks + pps, most_pps), len(hosts), congested_pps, _switches(shape, jobs, flows), pausing)


def _arriving_pps(shape: Shape, flows: Sequence[Flow]) -> float:
    """Of flows that arrive over time, in the second that has the most."""
    pairs = [PairArrivals(flow.src, flow.dst, flow.arrivals) for flow in flows]
    sending = most_sending(shape, pairs, shape.least_ns(_SECOND_NS)) if pairs else 0.0
    return sending * shape.planes * shape.port_pps


def _switches(shape: Shape, jobs: Iterable[StepJob], flows: Iterable[Flow]) -> float:
    """On the way of a packet, in the mean over all that send to each other; SWITCHES where nobody is known to."""
    family = shape.family
    pairs = Counter((family.t0_of(qp.src), family.t0_of(qp.dst)) for job in jobs for qp in job.qps())
    pairs.update((family.t0_of(flow.src), family.t0_of(flow.dst)) for flow in flows)
    crossed = sum(count * len(family.nearest(*pair)) for pair, count in pairs.items())
    return crossed / pairs.total() if pairs else SWITCHES


def _busiest(shape: Shape, flows: Sequence[Flow]) -> list[Flow]:
    """Of the moments at which a flow begins, the flows of that with the most packets."""
    together = [[flow for flow in flows if _goes_on(flow, t_ns)] for t_ns in {flow.start_ns for flow in flows}]
    return max(together, key=lambda flows: sum(_pps(shape, flows)), default=[])


def _goes_on(flow: Flow, t_ns: int) -> bool:
    return flow.start_ns <= t_ns and (flow.stop_ns is None or t_ns < flow.stop_ns)


def _pps(shape: Shape, flows: Iterable[Flow]) -> tuple[float, float]:
    """Packets a second of all these flows, and of those that get less than their own host would let them have."""
    demands = {flow.name: flow.demand for flow in flows}
    shares = max_min_shares(shape, demands)
    leaving = Counter[int]()
    for demand in demands.values():
        leaving[demand.src] += demand.weight
    line = line_rate(shape)
    waiting = [name for name, each in demands.items() if shares[name] < _OWN * line * each.weight / leaving[each.src]]
    return sum(shares.values()) / shape.payload_bytes, sum(shares[name] for name in waiting) / shape.payload_bytes
