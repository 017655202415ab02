"""A fabric as a text table: figures, names, addresses and one path in detail."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mrc_testbed.topos import plain, usid
from mrc_testbed.topos.budget import count_routes
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.tables import routes_of
from mrc_testbed.topos.units import count_text, plural, rate_text, time_text

WIDTH = 100
"""Width of the table; longer texts are wrapped."""
_LABEL = 9


def table(plan: Plan) -> str:
    """Counts, rates, naming, the addresses by which packets find each kind of node, and one path in detail."""
    how = (_usids(plan), _example(plan)) if plan.by_usid else (_addresses(plan), _hashed(plan))
    parts = (_counts(plan), _rates(plan), _names(plan), *how, _learned(plan))
    return "\n".join(line for rows in parts for title, text in rows for line in _row(title, text))


def _row(title: str, text: str) -> list[str]:
    indent = " " * (_LABEL + 1)
    first = f"{title:<{_LABEL}} "
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent, drop_whitespace=True)


def _counts(plan: Plan) -> Iterator[tuple[str, str]]:
    shape = plan.shape
    host_links = shape.hosts * shape.planes
    tiers = f"({shape.t0_groups} T0 + {shape.t1} T1)"
    yield "fabric", f"{plural(shape.planes, 'plane')} x {tiers}, {plural(shape.hosts_per_t0, 'host')} a T0"
    yield "counts", f"{plural(shape.hosts, 'host')}, {plural(shape.switches, 'switch')}, {plural(shape.links, 'link')}"
    yield "", f"({host_links:,} host ports, {shape.links - host_links:,} T0-T1), {_routes(plan):,} routes"


def _routes(plan: Plan) -> int:
    if plan.routing is Routing.SRV6:
        return count_routes(plan.shape)
    return sum(1 for node in plan.node_names for _ in routes_of(plan, node))


def _rates(plan: Plan) -> Iterator[tuple[str, str]]:
    shape = plan.shape
    yield "rates", f"{rate_text(shape.port_rate_bps)} a port, rtt {time_text(shape.rtt_ns)}"
    yield "", f"{count_text(shape.port_pps)} packets/s a port, {count_text(shape.fabric_pps)} when all hosts send"
    yield "", f"{shape.plane_bdp_packets:.1f} packets in flight fill a plane"


def _names(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "hosts", _span([host.name for host in plan.hosts])
    for tier, kind in ((0, "T0"), (1, "T1")):
        found = [switch.name for switch in plan.switches if switch.tier == tier]
        if found:
            yield kind, f"{_span(found)}, named p<plane>-t{tier}-<number>"
    yield "links", f"{_span([link.name for link in plan.links if link.is_host_link])} (port of a host)"
    between = [link.name for link in plan.links if not link.is_host_link]
    if between:
        yield "", f"{_span(between)} (T0 to T1)"


def _usids(plan: Plan) -> Iterator[tuple[str, str]]:
    first = {switch.tier: switch for switch in reversed(plan.switches)}
    last = {switch.tier: switch for switch in plan.switches}
    for tier in sorted(first):
        ends = [first[tier]] if first[tier] == last[tier] else [first[tier], last[tier]]
        text = ", ".join(f"{switch.name} {usid.locator(switch.usid)}" for switch in ends)
        yield ("uSIDs" if tier == 0 else ""), text
    downlink = usid.locator(usid.usid(usid.TIER_HOST, 0, 0))
    yield "", f"first host of a T0, in plane 0, {downlink}; block fcbb:bb00::/32"


def _example(plan: Plan) -> Iterator[tuple[str, str]]:
    src, dst = plan.hosts[0], plan.hosts[-1]
    paths = plan.paths(src, dst)
    path = paths[min(len(paths) // 2 + plan.shape.t1 // 2, len(paths) - 1)]
    ev = usid.ev(path.id, src.udp_port)
    yield "paths", f"{len(paths)} from {src.name} to {dst.name}; one of them:"
    yield "", f"EV {ev:#010x} = plane {path.id.plane}, uplink {path.id.uplink}, UDP port {src.udp_port}"
    yield "", f"written to {path.inner}"
    yield "", f"travels as {path.outer}"
    for link in plan.links_on_path(src, dst, path.id):
        yield "", f"over {link}"


def _addresses(plan: Plan) -> Iterator[tuple[str, str]]:
    ends = (plan.hosts[0], plan.hosts[-1])
    yield "addresses", ", ".join(f"{host.name} {plan.address_of(host)}" for host in ends) + ", in plane 0"
    yield "", f"plane 0 {plain.plane_prefix(0)}, its hosts of T0 group 0 {plain.group_prefix(0, 0)}"


def _hashed(plan: Plan) -> Iterator[tuple[str, str]]:
    shape = plan.shape
    if shape.t0_groups > 1:
        yield "paths", f"a T0 hashes each flow to another T0 over {plural(shape.t1, 'uplink')}"
    if shape.planes > 1:
        yield "planes", f"a host has an address in each of {shape.planes}; a flow keeps its plane"


def _learned(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.learns_locators:
        yield "BGP", "between T0 and T1 finds the routes to their uSIDs"
    elif plan.learns and plan.by_usid:
        yield "BGP", f"between T0 and T1 finds the routes to plain addresses of hosts, such as {_plain(plan)}"
    elif plan.learns:
        yield "BGP", "between T0 and T1 finds the routes to hosts"


def _plain(plan: Plan) -> str:
    host = plan.hosts[0]
    return f"{plan.host_ports(host)[0][1]} of {host.name}"


def _span(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else f"{found[0]} ... {found[-1]}"
