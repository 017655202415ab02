"""Which ways a host probes, from itself up to a switch and back: all links of a fabric, each by several hosts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mrc_testbed.testbed.mapper.suspects import Elements, SuspectTable
from mrc_testbed.topos import usid
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan


@dataclass(frozen=True, slots=True)
class ProbeRoute:
    """A probe of a host: up these links, and back the same way. `switches`: where it comes by, the last one turns it
    round; `address`: the same as a list of uSIDs, there and back; `crosses`: all that it meets there and back."""

    host: str
    plane: int
    links: tuple[str, ...]
    switches: tuple[str, ...]
    address: str
    crosses: Elements


MOST_SWITCHES = 3
"""Upwards: an address lists six uSIDs, and a probe comes by all switches but the last one twice, and then by its host.
Links above a third tier are not probed."""


def probe_routes(
    plan: Plan, table: SuspectTable, owners: int, hosts: Collection[str] = ()
) -> dict[str, tuple[ProbeRoute, ...]]:
    """By host: a probe of each of its ports, and of its share of the links above them, so that each link is probed by
    `owners` hosts below it, or by all if there are fewer. `hosts`: those that probe; empty: all."""
    found: dict[str, list[ProbeRoute]] = {host.name: [] for host in plan.hosts if not hosts or host.name in hosts}
    for way in _ways(plan, list(found), owners):
        back = (*way, *reversed(way))
        host = way[0].near.node
        crosses = table.crossed(host, (link.name for link in back))
        links, switches = tuple(link.name for link in way), tuple(link.far.node for link in way)
        places = tuple(plan.switch_by_name[name].place for name in switches)
        address = usid.loop_address(way[0].plane, places, plan.host_by_name[host].downlink)
        found[host].append(ProbeRoute(host, way[0].plane, links, switches, address, crosses))
    return {host: tuple(routes) for host, routes in found.items()}


def _ways(plan: Plan, hosts: list[str], owners: int) -> Iterator[tuple[Link, ...]]:
    """Links from a host upwards. Those that end at one switch go on over each of its links: over link number n those
    of the hosts n, n + 1 ... below it."""
    level: list[tuple[Link, ...]] = [(link,) for host in hosts for link in _above(plan, host)]
    while level and len(level[0]) <= MOST_SWITCHES:
        yield from level
        below: dict[str, list[tuple[Link, ...]]] = {}
        for way in level:
            below.setdefault(way[-1].far.node, []).append(way)
        level = [
            (*ways[(number + owner) % len(ways)], link)
            for switch, ways in below.items()
            for number, link in enumerate(_above(plan, switch))
            for owner in range(min(owners, len(ways)))
        ]


def _above(plan: Plan, node: str) -> list[Link]:
    return [link for link in plan.links_of(node) if link.near.node == node]
