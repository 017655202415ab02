"""A switch as FRR's configuration: static routes and the switch's own uSID (FRR from 10.4 on: `static-sids`).

Source: FRR's user guide, "Zebra: Segment-Routing IPv6" and "STATIC".
"""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.export.lab.addressed import addressed_routes, port_address
from mrc_testbed.testbed.fabric.commands import switch_address
from mrc_testbed.topos import usid
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Route, RouteKind

DAEMONS = 'zebra=yes\nstaticd=yes\nbgpd=no\nvtysh_enable=yes\nzebra_options="-A 127.0.0.1"\n'
"""/etc/frr/daemons: which ones run."""


def frr_text(plan: Plan, switch: str) -> str:
    """Its frr.conf."""
    return "\n".join([*_head(plan, switch), *_routes(plan, switch), *_sids(plan, switch), "end", ""])


def _head(plan: Plan, switch: str) -> Iterator[str]:
    yield from ("frr defaults datacenter", f"hostname {switch}", "ipv6 forwarding", "!")
    if plan.answers:
        yield from ("interface lo", f" ipv6 address {switch_address(plan, switch)}/128", "exit", "!")
    for own, _ in plan.ports[switch]:
        yield from (f"interface {own.name}", f" ipv6 address {port_address(own.ifindex)}", "exit", "!")


def _routes(plan: Plan, switch: str) -> Iterator[str]:
    for route in addressed_routes(plan, switch):
        yield from _route(route)
    yield "!"


def _route(route: Route) -> Iterator[str]:
    """FRR joins static routes to one prefix into one with several next hops."""
    if route.kind is RouteKind.BLACKHOLE:
        yield f"ipv6 route {route.prefix} blackhole"
    elif route.kind is RouteKind.VIA:
        yield f"ipv6 route {route.prefix} {route.target} {route.device}"
    yield from (f"ipv6 route {route.prefix} {hop.gateway} {hop.device}" for hop in route.hops)


def _sids(plan: Plan, switch: str) -> Iterator[str]:
    """The locator has the shape F3216 of RFC 9800: a block of 32 bits, uSIDs of 16."""
    if not plan.by_usid:
        return
    own = usid.locator(plan.switch_by_name[switch].usid)
    yield from ("segment-routing", " srv6", "  locators", "   locator MAIN")
    yield f"    prefix {own} block-len {usid.LCBLOCK_BITS} node-len {usid.LCNODE_FN_BITS} func-bits 16"
    yield from ("    behavior usid", "   exit", "   !", "  exit", "  !")
    yield from ("  static-sids", f"   sid {own} locator MAIN behavior uN", "  exit", "  !", " exit", " !", "exit", "!")
