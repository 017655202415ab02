"""Which EVs a host has towards another one, for transports that have EVs."""

from __future__ import annotations

from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.transports.base import Chooser
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.usid import PathId


def evs_a_plane(scenario: Scenario, shape: Shape, near: bool) -> int:
    """How many in each plane: one for each path, or where switches hash them its share of `endpoint.entropies`.
    `near`: both hosts are below the same T0s."""
    if scenario.transport.chooser is Chooser.ENTROPY and scenario.endpoint.entropies is not None:
        return scenario.endpoint.entropies // shape.planes
    return 1 if near else max(shape.t1, 1)


def ev_ids(scenario: Scenario, plan: Plan, source: Host, destination: Host) -> list[PathId]:
    """The numbers of all of them by plane; none for a transport without EVs. Over hashing switches a number is no
    uplink."""
    if not scenario.transport.has_paths:
        return []
    each = evs_a_plane(scenario, plan.shape, source.group == destination.group)
    return [PathId(plane, number) for plane in range(plan.shape.planes) for number in range(each)]
