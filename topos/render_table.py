"""A fabric as a text table: figures, names, addresses and one path in detail."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from mrc_testbed.topos import plain, usid
from mrc_testbed.topos.budget import count_routes
from mrc_testbed.topos.graph import Family, SwitchPlace
from mrc_testbed.topos.layout import joins, spread, tier_counts, title, titles, way_word
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
    family, host_links = shape.family, shape.hosts * shape.planes
    below = spread(map(len, family.below))
    hosts = f"{below} host{'s' * (below != '1')} a {title(family, 0)}"
    yield "fabric", f"{plural(shape.planes, 'plane')} x ({' + '.join(tier_counts(family))}), {hosts}"
    yield "counts", f"{plural(shape.hosts, 'host')}, {plural(shape.switches, 'switch')}, {plural(shape.links, 'link')}"
    between = [f"{shape.planes * join.cables:,} {_joined(join.lower, join.upper)}" for join in joins(family)]
    links = ", ".join([f"{host_links:,} host ports", *(between or [f"0 {_joined(0, 1)}"])])
    yield "", f"({links}), {_routes(plan):,} routes"


def _joined(lower: int, upper: int) -> str:
    return f"T{lower}-T{upper}"


def _routes(plan: Plan) -> int:
    if plan.routing is Routing.SRV6:
        return count_routes(plan.shape)
    return sum(1 for node in plan.node_names for _ in routes_of(plan, node))


def _rates(plan: Plan) -> Iterator[tuple[str, str]]:
    shape = plan.shape
    yield "rates", f"{rate_text(shape.port_rate_bps)} a port, rtt {time_text(shape.rtt_ns)}"
    yield "", f"{count_text(shape.port_pps)} packets/s a port, {count_text(shape.fabric_pps)} when all hosts send"
    yield "", f"{shape.plane_bdp_packets:.1f} packets in flight fill a plane"
    for join in joins(shape.family):
        if join.shares != (1,):
            rates = " or ".join(rate_text(share * shape.port_rate_bps) for share in join.shares)
            yield "", f"{rates} a link {_joined(join.lower, join.upper)}"
    yield from _oversubscribed(shape.family)


def _oversubscribed(family: Family) -> Iterator[tuple[str, str]]:
    """Tiers whose switches have more bandwidth below them than above; none where switches of a tier join each other."""
    down = {SwitchPlace(0, group): float(len(below)) for group, below in enumerate(family.below)}
    up: dict[SwitchPlace, float] = {}
    for lower, upper, share in family.cables():
        up[lower] = up.get(lower, 0.0) + share
        down[upper] = down.get(upper, 0.0) + share
    flat = {lower.tier for lower, upper, _ in family.cables() if lower.tier == upper.tier}
    for tier in set(range(len(family.tiers))) - flat:
        places = [place for place in up if place.tier == tier]
        ratio = max((down[place] / up[place] for place in places), default=0.0)
        if ratio > 1:
            yield "", f"oversubscribed {ratio:.3g}:1 at a {title(family, tier)}"


def _names(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "hosts", _span([host.name for host in plan.hosts])
    family = plan.shape.family
    for tier in range(len(family.tiers)):
        found = [switch.name for switch in plan.switches if switch.tier == tier]
        what = "" if title(family, tier) == f"T{tier}" else f": {title(family, tier)}"
        yield f"T{tier}", f"{_span(found)}, named p<plane>-t{tier}-<number>{what}"
    yield "links", f"{_span([link.name for link in plan.links if link.is_host_link])} (port of a host)"
    tier_of = {switch.name: switch.tier for switch in plan.switches}
    between: dict[tuple[int, int], list[str]] = {}
    for link in plan.links:
        if not link.is_host_link:
            between.setdefault((tier_of[link.near.node], tier_of[link.far.node]), []).append(link.name)
    for (lower, upper), found in between.items():
        yield "", f"{_span(found)} (T{lower} to T{upper})"


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
    path = paths[min(len(paths) // 2 + len(plan.ways(src, dst)) // 2, len(paths) - 1)]
    ev = usid.ev(path.id, src.udp_port)
    yield "paths", f"{len(paths)} from {src.name} to {dst.name}; one of them:"
    number = f"{way_word(plan.shape.family)} {path.id.uplink}"
    yield "", f"EV {ev:#010x} = plane {path.id.plane}, {number}, UDP port {src.udp_port}"
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
    if shape.family.tiers[0] > 1:
        yield "paths", _hashing(plan)
    if shape.planes > 1:
        yield "planes", f"a host has an address in each of {shape.planes}; a flow keeps its plane"


def _hashing(plan: Plan) -> str:
    """Where each tier has a choice."""
    family = plan.shape.family
    most = [max(map(_choices(plan), places), default=0) for places in _by_tier(plan)]
    first = f"a {title(family, 0)} hashes each flow to another {title(family, 0)} over {plural(most[0], 'uplink')}"
    above = [f"a {title(family, tier)} over {count}" for tier, count in enumerate(most) if tier and count > 1]
    return ", ".join([first, *above])


def _by_tier(plan: Plan) -> list[list[SwitchPlace]]:
    tiers = plan.shape.family.tiers
    return [[place for place in plan.shape.family.switches() if place.tier == tier] for tier in range(len(tiers))]


def _choices(plan: Plan) -> Callable[[SwitchPlace], int]:
    return lambda place: max(map(len, plan.next_places(place).values()), default=0)


def _learned(plan: Plan) -> Iterator[tuple[str, str]]:
    *lower, last = titles(plan.shape.family)
    between = f"between {', '.join(lower)} and {last}"
    if plan.learns_locators:
        yield "BGP", f"{between} finds the routes to their uSIDs"
    elif plan.learns and plan.by_usid:
        yield "BGP", f"{between} finds the routes to plain addresses of hosts, such as {_plain(plan)}"
    elif plan.learns:
        yield "BGP", f"{between} finds the routes to hosts"


def _plain(plan: Plan) -> str:
    host = plan.hosts[0]
    return f"{plan.host_ports(host)[0][1]} of {host.name}"


def _span(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else f"{found[0]} ... {found[-1]}"
