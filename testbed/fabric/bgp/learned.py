"""What BGP should have written into the kernel: every way that is left, by the links that are. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from mrc_testbed.topos import names, plain
from mrc_testbed.topos.plan import NextHop, Plan, Route, RouteKind, Switch


def learned_routes(
    plan: Plan, node: str, announced: Literal["hosts", "racks"], lost: Collection[str] = ()
) -> Iterator[Route]:
    """The routes of a node that BGP finds, once it has found all. `lost`: links by name that carry nothing.

    A T0 reaches another group over each T1 that both have a link to; a T1 reaches a group over its link to that T0.
    """
    switch = plan.switch_by_name.get(node)
    if switch is None:
        return
    for group in range(plan.shape.t0_groups):
        hops = _hops(plan, switch, group, lost)
        for prefix in _prefixes(plan, switch.plane, group, announced, lost) if hops else ():
            yield Route(RouteKind.MULTIPATH, prefix, "", hops=hops)


def _hops(plan: Plan, switch: Switch, group: int, lost: Collection[str]) -> tuple[NextHop, ...]:
    if switch.tier:
        link = _link(switch.plane, group, switch.index)
        near = plan.link_by_name[link].near
        hop = NextHop(near.link_local, names.downlink_port(group))
        return () if link in lost else (hop,)
    if switch.index == group:
        return ()
    found = []
    for t1 in range(plan.shape.t1):
        mine, theirs = (_link(switch.plane, each, t1) for each in (switch.index, group))
        if mine not in lost and theirs not in lost:
            far = plan.link_by_name[mine].far
            found.append(NextHop(far.link_local, names.uplink_port(t1)))
    return tuple(found)


def _link(plane: int, group: int, t1: int) -> str:
    return names.link_name(names.switch_name(plane, 0, group), names.switch_name(plane, 1, t1))


def _prefixes(
    plan: Plan, plane: int, group: int, announced: Literal["hosts", "racks"], lost: Collection[str]
) -> Iterator[str]:
    if announced == "racks":
        yield plain.group_prefix(plane, group)
        return
    t0 = names.switch_name(plane, 0, group)
    for host in plan.hosts:
        if host.group == group and names.link_name(host.name, t0) not in lost:
            yield f"{plain.host_address(plane, group, host.downlink)}/128"
