"""Routes by addresses of ports. A switch that is not ours has MAC addresses which nobody knows before, so neighbours
are found by Neighbor Discovery, in the /127 of their link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mrc_testbed.topos import plain
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Route
from mrc_testbed.topos.tables import routes_of


def port_address(ifindex: int) -> str:
    """The address of one end of a link, with the length of its prefix."""
    return f"{plain.transfer_address(ifindex)}/{plain.TRANSFER_BITS}"


def addressed_routes(plan: Plan, node: str) -> Iterator[Route]:
    """The routes of a node with the addresses of ports as next hops."""
    addresses = {peer.link_local: plain.transfer_address(peer.ifindex) for _, peer in plan.ports[node]}
    for route in routes_of(plan, node):
        yield _addressed(route, addresses)


def _addressed(route: Route, addresses: Mapping[str, str]) -> Route:
    hops = tuple(replace(hop, gateway=addresses[hop.gateway]) for hop in route.hops)
    return replace(route, target=addresses.get(route.target, route.target), hops=hops)
