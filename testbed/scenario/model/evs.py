"""Which EVs a host has towards another one, for transports that have EVs."""

from __future__ import annotations

from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.transports.base import Chooser
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.usid import PathId


def evs_a_plane(scenario: Scenario, shape: Shape, near: bool) -> int:
    """The most in each plane. `near`: of hosts that are below the same T0s."""
    return _hashed_a_plane(scenario, shape) or (1 if near else shape.family.most_ways())


def evs_between(scenario: Scenario, plan: Plan, source: Host, destination: Host) -> int:
    """How many in each plane: one for each path, or where switches hash them its share of `endpoint.entropies`."""
    return _hashed_a_plane(scenario, plan.shape) or plan.shape.family.way_count(source.group, destination.group)


def _hashed_a_plane(scenario: Scenario, shape: Shape) -> int:
    """0 where there is one for each path."""
    if scenario.transport.chooser is Chooser.ENTROPY and scenario.endpoint.entropies is not None:
        return scenario.endpoint.entropies // shape.planes
    return 0


def ev_ids(scenario: Scenario, plan: Plan, source: Host, destination: Host) -> list[PathId]:
    """The numbers of all of them by plane; none for a transport without EVs. Over hashing switches a number is that of
    no way."""
    if not scenario.transport.has_paths:
        return []
    numbers = range(evs_between(scenario, plan, source, destination))
    return [PathId(plane, number) for plane in range(plan.shape.planes) for number in numbers]
