"""The routes that each node of a fabric is given: what the kernel must hold, and what a hash chooses from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mrc_testbed.topos import names, plain, usid
from mrc_testbed.topos.graph import SwitchPlace
from mrc_testbed.topos.nodes import Host, Switch
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import SID_DEVICE, NextHop, Route, RouteKind


def routes_of(plan: Plan, node: str) -> Iterator[Route]:
    """Every route of `node` under `routing` that is written, not learned."""
    host = plan.host_by_name.get(node)
    if plan.by_usid:
        yield from _switch_routes(plan, plan.switch_by_name[node]) if host is None else _host_routes(plan, host)
        if plan.answers and host is None:
            yield from _routes_back(plan, plan.switch_by_name[node])
    if plan.has_plain_addresses:
        switches = plan.switch_by_name
        yield from _plain_switch_routes(plan, switches[node]) if host is None else _plain_host_routes(plan, host)


def _plain_host_routes(plan: Plan, host: Host) -> Iterator[Route]:
    for (own, peer), (plane, address) in zip(plan.ports[host.name], plan.host_ports(host), strict=True):
        yield Route(RouteKind.VIA, plain.plane_prefix(plane), own.name, peer.link_local, source=address)


def _plain_switch_routes(plan: Plan, switch: Switch) -> Iterator[Route]:
    for own, peer in plan.ports[switch.name]:
        host = plan.host_by_name.get(peer.node)
        if host is not None:
            address = plain.host_address(switch.plane, host.group, host.downlink)
            yield Route(RouteKind.VIA, f"{address}/128", own.name, peer.link_local)
    yield from _unlearned(plan, switch) if plan.learns else _hashed_routes(plan, switch)


def _unlearned(plan: Plan, switch: Switch) -> Iterator[Route]:
    # What BGP has no route for is thrown away without a message. A T0 may announce its own group whole.
    yield Route(RouteKind.BLACKHOLE, plain.plane_prefix(switch.plane), "lo")
    if switch.tier == 0:
        yield Route(RouteKind.BLACKHOLE, plain.group_prefix(switch.plane, switch.index), "lo")


def _hashed_routes(plan: Plan, switch: Switch) -> Iterator[Route]:
    towards = plan.next_places(switch.place)
    used = {place for places in towards.values() for place in places} if switch.tier == 0 else ()
    above = tuple(place for place in plan.beside(switch.place) if place in used)
    for group, places in towards.items():
        if places != above:
            yield _toward(plan, switch, plain.group_prefix(switch.plane, group), places)
    if above and above in towards.values():
        # Packets to a host of its own that is cut off would go up, come down again, and up: until their hops end.
        yield Route(RouteKind.BLACKHOLE, plain.group_prefix(switch.plane, switch.index), "lo")
        hops = tuple(_hop(plan, switch, place) for place in above)
        yield Route(RouteKind.MULTIPATH, plain.plane_prefix(switch.plane), "", hops=hops)


def _toward(plan: Plan, switch: Switch, prefix: str, places: tuple[SwitchPlace, ...]) -> Route:
    hops = tuple(_hop(plan, switch, place) for place in places)
    if len(hops) > 1:
        return Route(RouteKind.MULTIPATH, prefix, "", hops=hops)
    return Route(RouteKind.VIA, prefix, hops[0].device, hops[0].gateway)


def _hop(plan: Plan, switch: Switch, place: SwitchPlace) -> NextHop:
    link = plan.link_between(switch.name, names.switch_name(switch.plane, *place))
    own, peer = link.ends if link.near.node == switch.name else link.ends[::-1]
    return NextHop(peer.link_local, own.name)


def _switch_routes(plan: Plan, switch: Switch) -> Iterator[Route]:
    yield Route(RouteKind.END, usid.locator(switch.usid), SID_DEVICE)
    for own, peer in plan.ports[switch.name]:
        if not (plan.learns_locators and plan.speaks_bgp(own, peer)):
            locator = usid.locator(sid_of(plan, peer.node, switch.plane))
            yield Route(RouteKind.VIA, locator, own.name, peer.link_local)


def _routes_back(plan: Plan, switch: Switch) -> Iterator[Route]:
    """To the hosts, for what a switch says itself. From one that others are above most hosts are reached over all of
    those, by one route. Those that are not have a second one that ends: with the way to them cut, packets would go up,
    come down again, and up."""
    towards = plan.next_places(switch.place)
    above = _above(switch, towards.values())
    if above:
        yield _toward(plan, switch, usid.ALL_HOSTS, above)
    ports = {peer.node: (own, peer) for own, peer in plan.ports[switch.name]}
    for host in plan.hosts:
        prefix, places = usid.outside_prefix(host.index), towards.get(host.group, ())
        if host.name in ports:
            own, peer = ports[host.name]
            yield Route(RouteKind.VIA, prefix, own.name, peer.link_local)
        elif places and places != above:
            yield _toward(plan, switch, prefix, places)
        else:
            continue
        if above:
            yield Route(RouteKind.BLACKHOLE, usid.host_prefix(host.index), "lo")


def _above(switch: Switch, towards: Iterable[tuple[SwitchPlace, ...]]) -> tuple[SwitchPlace, ...]:
    """The switches of higher tiers over which most groups are reached; none where there are none."""
    counts = Counter(places for places in towards if places[0].tier > switch.tier)
    return max(counts, key=lambda places: counts[places], default=())


def sid_of(plan: Plan, node: str, plane: int) -> int:
    """The uSID of a switch, or of a host in a plane."""
    host = plan.host_by_name.get(node)
    if host is None:
        return plan.switch_by_name[node].usid
    return usid.usid(usid.TIER_HOST, plane, host.downlink)


def _host_routes(plan: Plan, host: Host) -> Iterator[Route]:
    yield Route(RouteKind.LOCAL, usid.host_prefix(host.index), "lo")
    for own, peer in plan.ports[host.name]:
        switch = plan.switch_by_name[peer.node]
        own_usid = usid.usid(usid.TIER_HOST, switch.plane, host.downlink)
        yield Route(RouteKind.VIA, usid.locator(switch.usid), own.name, peer.link_local)
        yield Route(RouteKind.DT6, usid.locator(own_usid), SID_DEVICE)
    for dst in plan.peers_of(host):
        paths = plan.paths(host, dst)
        yield Route(RouteKind.ENCAP, f"{dst.address}/128", SID_DEVICE, paths[0].outer)
        for path in paths:
            yield Route(RouteKind.ENCAP, f"{path.inner}/128", SID_DEVICE, path.outer)
