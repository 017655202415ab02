"""What faults change of the tables of switches: entries that are missing, or lead out of another port. Pure.

A switch that packets list by uSID has an entry a neighbour, by the port towards it. So an entry is named here by that
port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from mrc_testbed.topos import usid
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Route, RouteKind
from mrc_testbed.topos.tables import routes_of

Misled = Mapping[Interface, Interface | None]
"""By the port of a switch towards a neighbour: the port of the same switch that its entry leads to instead; None: the
entry is missing."""
AS_PLANNED: Misled = MappingProxyType({})


def routes_with(misled: Misled, plan: Plan, node: str) -> Iterator[Route]:
    """The planned routes of a node with what faults have made of them."""
    changed = {own.name: instead for own, instead in misled.items() if own.node == node}
    if not changed:
        yield from routes_of(plan, node)
        return
    for route in routes_of(plan, node):
        if not _is_entry(route) or route.device not in changed:
            yield route
        elif instead := changed[route.device]:
            yield led_by(route, instead, plan)


def led_by(route: Route, port: Interface, plan: Plan) -> Route:
    """The same route out of another port of its node."""
    peer = next(peer for own, peer in plan.ports[port.node] if own == port)
    return replace(route, device=port.name, target=peer.link_local)


def entry_of(port: Interface, plan: Plan) -> Route:
    """The planned entry of a switch for its neighbour at one of its ports. Raises KeyError where it has none that is
    written: where switches choose, or learn from each other."""
    for route in routes_of(plan, port.node):
        if _is_entry(route) and route.device == port.name:
            return route
    raise KeyError(f"{port.node} has no entry by {port.name}")


def _is_entry(route: Route) -> bool:
    """For a neighbour's uSID, and not for the address of a host."""
    return route.kind is RouteKind.VIA and usid.is_in_block(route.prefix)
