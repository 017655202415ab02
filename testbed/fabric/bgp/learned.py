"""What BGP should have written into the kernel: every shortest way that is left, by the links that are. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mrc_testbed.testbed.switching.options import BgpOptions
from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.nodes import Interface, Switch
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import NextHop, Route, RouteKind


def learned_routes(plan: Plan, node: str, bgp: BgpOptions, lost: Collection[str] = ()) -> Iterator[Route]:
    """The routes of a node that BGP finds, once it has found all. `lost`: links by name that carry nothing.

    A switch reaches what another one of its plane announces by each neighbour that is nearer to it. Where all T1 are
    one autonomous system, nothing goes through two of them, or from one to another.
    """
    switch = plan.switch_by_name.get(node)
    if switch is None:
        return
    for other in plan.switches:
        if other.plane == switch.plane and other is not switch:
            hops = tuple(_hops(plan, switch, _distances(plan, other, bgp, lost), lost))
            for prefix in announced(plan, other, bgp, lost) if hops else ():
                yield Route(RouteKind.MULTIPATH, prefix, "", hops=hops)


def possible_routes(plan: Plan, node: str, bgp: BgpOptions) -> Iterator[Route]:
    """Those that it may ever find, whatever links are lost: where there are detours, by each of its neighbours."""
    switch = plan.switch_by_name.get(node)
    if bgp.t1_as == "one" or switch is None:
        yield from learned_routes(plan, node, bgp)
        return
    hops = tuple(NextHop(peer.link_local, own.name) for own, peer in _sessions(plan, node, ()))
    for other in plan.switches:
        if other.plane == switch.plane and other is not switch:
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


def _distances(plan: Plan, end: Switch, bgp: BgpOptions, lost: Collection[str]) -> dict[str, int]:
    """From each switch that has a way to this one, the links on the shortest: on the way that a route travels, each
    switch takes it from the first who tells, and from who tells in the same number of systems.

    A T1 refuses a route that went through its own autonomous system.
    """
    found, here = {end.name: 0}, [end.name]
    while here:
        told = [
            peer.node
            for name in here
            for _, peer in _sessions(plan, name, lost)
            if peer.node not in found and not _loops(plan, peer.node, end, found[name], bgp)
        ]
        found |= {name: found[here[0]] + 1 for name in told}
        here = list(dict.fromkeys(told))
    return found


def _loops(plan: Plan, node: str, end: Switch, links_before: int, bgp: BgpOptions) -> bool:
    """True if a T1 would take a route that has been at one: one announced it, or it came over more than one link."""
    taker = plan.switch_by_name[node]
    return bgp.t1_as == "one" and taker.tier == 1 and (end.tier == 1 or links_before > 1)


def _sessions(plan: Plan, node: str, lost: Collection[str]) -> Iterator[tuple[Interface, Interface]]:
    for own, peer in plan.ports[node]:
        if plan.speaks_bgp(own, peer):
            lower, upper = (own, peer) if plan.switch_by_name[node].tier == 0 else (peer, own)
            if names.link_name(lower.node, upper.node) not in lost:
                yield own, peer
