"""What BGP should have written into the kernel: every shortest way that is left, by the links that are. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mrc_testbed.testbed.fabric.bgp.systems import autonomous_systems
from mrc_testbed.testbed.switching.options import BgpOptions
from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.nodes import Interface, Switch
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import NextHop, Route, RouteKind


def learned_routes(plan: Plan, node: str, bgp: BgpOptions, lost: Collection[str] = ()) -> Iterator[Route]:
    """The routes of a node that BGP finds, once it has found all. `lost`: links by name that carry nothing.

    A switch reaches what another one of its plane announces by each neighbour that is nearer to it. Nothing goes twice
    through one autonomous system.
    """
    switch = plan.switch_by_name.get(node)
    if switch is None:
        return
    systems = autonomous_systems(plan, bgp)
    for other in plan.switches:
        prefixes = list(announced(plan, other, bgp, lost)) if _are_two(switch, other) else []
        hops = tuple(_hops(plan, switch, _distances(plan, other, systems, lost), lost)) if prefixes else ()
        if hops:
            yield from (Route(RouteKind.MULTIPATH, prefix, "", hops=hops) for prefix in prefixes)


def _are_two(one: Switch, other: Switch) -> bool:
    """Two switches of one plane."""
    return one.plane == other.plane and one is not other


def possible_routes(plan: Plan, node: str, bgp: BgpOptions) -> Iterator[Route]:
    """Those that it may ever find, whatever links are lost: where there are detours, by each of its neighbours."""
    switch = plan.switch_by_name.get(node)
    if bgp.t1_as == "one" or switch is None:
        yield from learned_routes(plan, node, bgp)
        return
    hops = tuple(NextHop(peer.link_local, own.name) for own, peer in _sessions(plan, node, ()))
    for other in plan.switches:
        if _are_two(switch, other):
            yield from (Route(RouteKind.MULTIPATH, prefix, "", hops=hops) for prefix in announced(plan, other, bgp))


def announced(plan: Plan, switch: Switch, bgp: BgpOptions, lost: Collection[str] = ()) -> Iterator[str]:
    """What a switch tells its neighbours that it is the end of: its uSID, or the hosts of a T0 whose links are there,
    or their group."""
    if plan.learns_locators:
        yield usid.locator(switch.usid)
    elif switch.tier == 0 and bgp.routes == "racks":
        yield plain.group_prefix(switch.plane, switch.index)
    elif switch.tier == 0:
        for host in plan.hosts:
            if host.group == switch.index and names.link_name(host.name, switch.name) not in lost:
                yield f"{plain.host_address(switch.plane, switch.index, host.downlink)}/128"


def _hops(plan: Plan, switch: Switch, distances: Mapping[str, int], lost: Collection[str]) -> Iterator[NextHop]:
    nearer = distances.get(switch.name, 0) - 1
    for own, peer in _sessions(plan, switch.name, lost):
        if nearer >= 0 and distances.get(peer.node) == nearer:
            yield NextHop(peer.link_local, own.name)


def _distances(plan: Plan, end: Switch, systems: Mapping[str, int], lost: Collection[str]) -> dict[str, int]:
    """From each switch that has a way to this one, the links on the shortest: on the way that a route travels, each
    switch takes it from the first who tells, and from who tells in the same number of systems.

    A switch refuses a route that went through its own system. Where it is told of several routes of the same length
    they went through the same systems, in families whose ways go up and then down; else those of all count.
    """
    found, through, here = {end.name: 0}, {end.name: {systems[end.name]}}, [end.name]
    while here:
        told: dict[str, set[int]] = {}
        for name in here:
            for _, peer in _sessions(plan, name, lost):
                if peer.node not in found and systems[peer.node] not in through[name]:
                    told.setdefault(peer.node, {systems[peer.node]}).update(through[name])
        found |= {name: found[here[0]] + 1 for name in told}
        through |= told
        here = list(told)
    return found


def _sessions(plan: Plan, node: str, lost: Collection[str]) -> Iterator[tuple[Interface, Interface]]:
    for own, peer in plan.ports[node]:
        if plan.speaks_bgp(own, peer) and plan.link_between(node, peer.node).name not in lost:
            yield own, peer
