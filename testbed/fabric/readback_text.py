"""Routes as `ip -6 route show` prints them, so that a node which holds what it should needs no parser.

A host has a route for each path to each host that it talks to: 1.4 million characters for 96 hosts that all talk; the
JSON of that is three times as long and takes twenty times as long to compare. Where a line looks different, be it for a
drift or for another iproute2, the node is read again as JSON, and that decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.testbed.fabric.batch import query
from mrc_testbed.topos import usid
from mrc_testbed.topos.routes import Route, RouteKind

_TAIL = "metric 1024 pref medium"
"""What the kernel adds to a route of ours."""
_NEXT_HOP = "\n\tnexthop"
"""Each of several has a line of its own."""
_BY_KERNEL = " proto kernel "


def read_routes(pids: dict[str, int]) -> dict[str, str]:
    """The text of every node's routes. Raises FabricError."""
    return query(["ip", "-6", "route", "show", "table", "all"], pids)


def as_planned(text: str, routes: Iterable[Route]) -> bool:
    """True if these are the routes of `text`, no fewer and no more, but for those that the kernel made by itself."""
    whole = text.replace(_NEXT_HOP, " nexthop")
    lines = {" ".join(line.split()) for line in whole.splitlines() if _BY_KERNEL not in line}
    return lines == {_line(route) for route in routes}


def _line(route: Route) -> str:
    prefix = route.prefix.removesuffix("/128")
    device = f"dev {route.device}"
    if route.kind is RouteKind.ENCAP:
        return f"{prefix} encap seg6 mode encap.red segs 1 [ {route.target} ] {device} {_TAIL}"
    if route.kind is RouteKind.VIA:
        source = f" src {route.source}" if route.source else ""
        return f"{prefix} via {route.target} {device}{source} {_TAIL}"
    if route.kind is RouteKind.END:
        flavor = f"flavors next-csid lblen {usid.LCBLOCK_BITS} nflen {usid.LCNODE_FN_BITS}"
        return f"{prefix} encap seg6local action End {flavor} {device} {_TAIL}"
    if route.kind is RouteKind.DT6:
        return f"{prefix} encap seg6local action End.DT6 table local {device} {_TAIL}"
    if route.kind is RouteKind.LOCAL:
        return f"local {prefix} {device} table local {_TAIL}"
    if route.kind is RouteKind.BLACKHOLE:
        return f"blackhole {prefix} {device} {_TAIL}"
    hops = " ".join(f"nexthop via {hop.gateway} dev {hop.device} weight 1" for hop in route.hops)
    return f"{prefix} {_TAIL} {hops}"
