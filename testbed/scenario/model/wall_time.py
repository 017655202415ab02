"""How long a run in virtual time takes of a core, known before it. Pure but for which core is used."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.workloads.fairness import line_rate, max_min_shares
from mrc_testbed.testbed.workloads.flows import Flow
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.units import time_text

_PACKET_S = 7.5e-6
"""CPU time of a data packet, with its acknowledgements, among 8 hosts with the compiled core (docs/worlds.md)."""
_HOSTS, _GROWTH = 8, 0.37
"""From 8 to 256 hosts a packet takes 3.6 times as long: less of its data is in the caches."""
_IN_PYTHON = 5
"""The core in Python takes as many times as long."""
_LOOK_S = 26e-6
"""CPU time of a host that looks for packets twice in T, where nothing flows."""
_SWIFT, _SLOW = 0.5, 2.5
"""Other machines and transports: the ends of the range."""
_START_S, _HOST_S = 0.9, 0.01
"""From the command to the workload, and for each host."""


class WallTime(NamedTuple):
    """In seconds: a run takes no less, and no more."""

    least_s: float
    most_s: float

    def __str__(self) -> str:
        return " to ".join(time_text(float(f"{one * 1e9:.2g}")) for one in self)


def wall_time(*scenarios: Scenario) -> WallTime:
    """Of runs in virtual time, one after the other."""
    each = [_of_one(scenario) for scenario in scenarios]
    return WallTime(sum(one.least_s for one in each), sum(one.most_s for one in each))


def _of_one(scenario: Scenario) -> WallTime:
    """The time of its packets, and at the most that of hosts that look for some."""
    shape = scenario.shape()
    each_s = _PACKET_S * max(1.0, shape.hosts / _HOSTS) ** _GROWTH
    factor = 1 if compiled.in_use() == "compiled" else _IN_PYTHON
    packets_s = factor * each_s * sum(_packets(scenario, shape))
    turns = scenario.expected_ns / shape.rtt_ns * 2 if shape.rtt_ns else 0.0
    looks_s = factor * turns * shape.hosts * _LOOK_S
    start_s = _START_S + shape.hosts * _HOST_S
    return WallTime(_SWIFT * (start_s + packets_s), _SLOW * (start_s + packets_s) + looks_s)


def _packets(scenario: Scenario, shape: Shape) -> Iterator[float]:
    """Data packets of each job and each flow; in the time of a flow at its fair share."""
    for job in scenario.jobs:
        steps = job.steps(shape)
        busy_ns = sum(part.busy_ns for part in steps.clean_parts(shape))
        yield steps.total_steps * len(steps.hosts) * busy_ns / 1e9 * shape.planes * shape.port_pps
    flows = scenario.job.flows.flows if scenario.job.flows else ()
    shares = max_min_shares(shape, {flow.name: flow.demand for flow in flows if flow.greedy})
    for flow in flows:
        yield _of_flow(shape, flow, shares.get(flow.name, line_rate(shape)))


def _of_flow(shape: Shape, flow: Flow, share: float) -> float:
    if flow.arrivals:
        return sum(ceil(one.size / shape.payload_bytes) for one in flow.arrivals)
    in_time = flow.pace(shape, share) * (flow.for_ns or 0) / 1e9
    messages = (in_time if flow.total_bytes is None else flow.total_bytes) / flow.message_bytes
    return messages * ceil(flow.message_bytes / shape.payload_bytes)
