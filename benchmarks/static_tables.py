"""Static tables of a fabric of up to 1,024 T0s: made, counted and walked as data, without a kernel.

    .venv/bin/python -m benchmarks.static_tables [--groups 32,64,128,256] [--planes 4]

Each size is planes of N T0s and N T1s with N hosts a T0, in a process of its own. A uSID has eight bits for the number
of a switch in its tier and plane, so N ends at 256, and four planes at 1,024 T0s. Printed: entries of the largest table
of a T0 and of a T1; seconds to number the fabric, to make all tables and to walk; and the memory of the process.

A walk takes the address that a sender writes for a path from table to table: longest prefix, shift, next one. It goes
between all T0s of each plane by two ways each, chosen so that all of them together use every entry of every switch;
entries that none has used are counted. What a switch does depends on the next uSID alone, so where every entry leads to
the neighbour that it names, every path ends where it should.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address
from itertools import islice
from multiprocessing import get_context

from mrc_testbed.topos import names, usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.graph import SwitchPlace, Way
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import RouteKind
from mrc_testbed.topos.tables import routes_of

PLANES, GROUPS = 4, "32,64,128,256"
LOCATOR_BITS = usid.LCBLOCK_BITS + usid.LCNODE_FN_BITS
BELOW_BLOCK = 128 - usid.LCBLOCK_BITS
HEADS = (
    *(" T0s ", " hosts ", " links ", " entries of a T0 ", " of a T1 ", " of all switches "),
    *(" plan ", " tables ", " a link ", " walks ", " unused entries ", " memory "),
)
MOST_TABLES = 16
"""That a packet may pass: more is a circle."""
Entry = str | RouteKind
"""Where an entry leads: to a neighbour, or it is the node's own (`END`, `DT6`)."""


class LostPacketError(Exception):
    """A packet that did not go as its path says."""


class StaticTables:
    """The entries for uSIDs of all nodes, by locator. `used`: those that a walk has taken."""

    def __init__(self, plan: Plan) -> None:
        self.entries = {node: dict(_entries(plan, node)) for node in plan.node_names}
        self.used: dict[str, set[int]] = {node: set() for node in self.entries}
        self.switches = tuple(plan.switch_by_name)

    def walk(self, source: str, outer: str) -> list[str]:
        """The nodes that a packet passes to this address, the host that takes it last. Raises LostPacketError."""
        passed, address = [source], int(IPv6Address(outer))
        for _ in range(MOST_TABLES):
            found = self._look_up(passed[-1], address)
            if found is RouteKind.DT6:
                return passed
            if found is RouteKind.END:
                address = _shifted(address)
            else:
                passed.append(str(found))
        raise LostPacketError(f"{outer} from {source} goes in circles: {passed}")

    def _look_up(self, node: str, address: int) -> Entry:
        locator = address >> (128 - LOCATOR_BITS)
        found = self.entries[node].get(locator)
        if found is None:
            raise LostPacketError(f"{node} has no route to {IPv6Address(address)}")
        self.used[node].add(locator)
        return found

    @property
    def unused(self) -> int:
        """Entries of switches that no walk has taken."""
        return sum(len(self.entries[switch]) - len(self.used[switch]) for switch in self.switches)

    def largest(self, plan: Plan, tier: int) -> int:
        """Entries of the largest table of a tier."""
        return max(len(self.entries[switch.name]) for switch in plan.switches if switch.tier == tier)


def _entries(plan: Plan, node: str) -> Iterator[tuple[int, Entry]]:
    peers = {own.name: peer.node for own, peer in plan.ports[node]}
    # On a host the paths to its peers come last, which no packet on its way is forwarded by.
    own = 1 + 2 * plan.shape.planes if node in plan.host_by_name else None
    for route in islice(routes_of(plan, node), own):
        if route.kind in (RouteKind.END, RouteKind.DT6):
            yield _locator(route.prefix), route.kind
        elif route.kind is RouteKind.VIA:
            yield _locator(route.prefix), peers[route.device]


@cache
def _locator(prefix: str) -> int:
    """All are equally long, so that the longest prefix is the one there is."""
    address, _, length = prefix.partition("/")
    if int(length) != LOCATOR_BITS:
        raise LostPacketError(f"{prefix} is no locator")
    return int(IPv6Address(address)) >> (128 - LOCATOR_BITS)


def _shifted(address: int) -> int:
    """Without the uSID that has been reached (RFC 9800, NEXT-C-SID)."""
    block = address >> BELOW_BLOCK << BELOW_BLOCK
    return block | address << usid.LCNODE_FN_BITS & (1 << BELOW_BLOCK) - 1


def sampled(plan: Plan) -> Iterator[tuple[Host, Host, Way]]:
    """Between all T0s, also from each to itself, two ways and two hosts: for each pair others. With one way a pair each
    T0 would leave an uplink out, because it has as many of them as there are T0s, itself among them."""
    family = plan.shape.family
    for source, below in enumerate(family.below):
        for target, beneath in enumerate(family.below):
            if below and beneath:
                hosts = plan.hosts[below[target % len(below)]], plan.hosts[beneath[source % len(beneath)]]
                yield from ((*hosts, way) for way in _two_ways(plan, source, target))


def _two_ways(plan: Plan, source: int, target: int) -> Iterator[Way]:
    if source == target:
        yield (SwitchPlace(0, source),)
        return
    ways = list(plan.shape.family.ways(source, target))
    first = (source + target) % len(ways)
    yield from {ways[first], ways[(first + 1) % len(ways)]}


def walk_all(plan: Plan, tables: StaticTables, paths: Iterator[tuple[Host, Host, Way]]) -> int:
    """Each path in every plane; how many walks that were. Raises LostPacketError for one that does not pass exactly the
    switches of its way and end at its host."""
    count = 0
    for src, dst, way in paths:
        for plane in range(plan.shape.planes):
            outer = usid.outer_address(usid.Segments(plane, way, dst.downlink))
            wanted = [src.name, *(names.switch_name(plane, *place) for place in way), dst.name]
            if (passed := tables.walk(src.name, outer)) != wanted:
                raise LostPacketError(f"{outer}: {passed} in place of {wanted}")
            count += 1
    return count


@dataclass(frozen=True)
class Size:
    """What one size takes."""

    t0s: int
    hosts: int
    links: int
    t0_entries: int
    t1_entries: int
    entries: int
    plan_s: float
    tables_s: float
    walks: int
    walk_s: float
    unused: int
    mib: float

    def row(self) -> str:
        """A line of the table."""
        a_link_us = 1e6 * (self.plan_s + self.tables_s) / self.links
        made = f"{self.plan_s:.1f} s | {self.tables_s:.1f} s | {a_link_us:.0f} us"
        sizes = f"{self.t0s:,} | {self.hosts:,} | {self.links:,}"
        counts = f"{sizes} | {self.t0_entries} | {self.t1_entries} | {self.entries:,}"
        return f"| {counts} | {made} | {self.walks:,} in {self.walk_s:.1f} s | {self.unused} | {self.mib:.0f} MiB |"


def measure(planes: int, groups: int) -> Size:
    """One size, in the process that calls."""
    begun = time.perf_counter()
    # Without a pair that talks hosts hold no paths; their number is that of pairs of hosts.
    plan = build_plan(clos2_shape(planes, groups, groups, groups, 10**8, 0)).with_paths_between(())
    planned = time.perf_counter()
    tables = StaticTables(plan)
    made = time.perf_counter()
    walks = walk_all(plan, tables, sampled(plan))
    walked = time.perf_counter()
    return Size(
        *(planes * groups, len(plan.hosts), len(plan.links), tables.largest(plan, 0), tables.largest(plan, 1)),
        sum(len(tables.entries[switch]) for switch in tables.switches),
        *(planned - begun, made - planned, walks, walked - made, tables.unused),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def main(planes: int, groups: Sequence[int]) -> int:
    """Every size; 1 if an entry was not used."""
    print("|".join(("", *HEADS, "")), "|".join(("", *["---"] * len(HEADS), "")), sep="\n", flush=True)
    unused = 0
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as one_each:
        for found in one_each.map(measure, [planes] * len(groups), groups):
            print(found.row(), flush=True)
            unused += found.unused
    return 1 if unused else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--planes", type=int, default=PLANES)
    parser.add_argument("--groups", default=GROUPS, help="T0s, T1s and hosts a T0 of a plane, separated by commas")
    given = parser.parse_args()
    sys.exit(main(given.planes, [int(one) for one in given.groups.split(",")]))
