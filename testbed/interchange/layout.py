"""Which host each node of a file becomes, and a fabric that has room for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.interchange.fat_tree import FatTree
from mrc_testbed.testbed.interchange.found import Found
from mrc_testbed.topos.names import parse_host

SAME, USED = "same", "used"
MOST_HOSTS = 1024
"""Of a fabric that is written for a file; with more nodes, only those that do anything get a host."""
_PAIR = re.compile(r"([0-9]{1,9})=(h[0-9]{1,6})", re.ASCII)
_RACKS = ((8, 4), (64, 8), (256, 16), (MOST_HOSTS, 32))
"""The most hosts of a fabric, and then the hosts of each T0."""
_USUAL_HOSTS = 8
_FAT_TREE = (
    "the network of {} failed links: they are those of a fat tree of switches that are all alike, and fail in plane p0 "
    "of four"
)


@dataclass(frozen=True, slots=True)
class HostLayout:
    """`host_of`: the number of each node's host. `lost`: what that changes, a sentence each. `fat_tree`: the fabric of
    the file, where every node has its place there."""

    host_of: Mapping[int, int]
    lost: tuple[str, ...] = ()
    fat_tree: FatTree | None = None

    @property
    def fabric(self) -> Mapping[str, Any]:
        """The keys of a fabric in which switches have as many links up as down."""
        if self.fat_tree:
            return {"planes": 4, **self.fat_tree.fabric}
        hosts = max([*self.host_of.values(), _USUAL_HOSTS - 1]) + 1
        rack = next(rack for most, rack in _RACKS if hosts <= most)
        return {"planes": 4, "t0_groups": -(-hosts // rack), "t1": rack, "hosts_per_t0": rack}


def layout_of(found: Found, hosts: str) -> HostLayout:
    """`hosts`: `same` (node 3 is h3), `used` (those that do anything are h0, h1, ...), a mapping such as
    `103=h0,34=h4`, or empty for what fits. Raises UsageError."""
    if hosts not in ("", SAME, USED):
        return HostLayout(_given(found, hosts), _places_lost(found))
    fits = found.nodes <= MOST_HOSTS
    if hosts == SAME and not fits:
        raise UsageError(f"--hosts same: {found.nodes} nodes are more than {MOST_HOSTS} hosts; choose used")
    if hosts == SAME or (not hosts and fits):
        network = (_FAT_TREE.format(len(found.fat_tree.failed)),) if found.fat_tree else ()
        return HostLayout({node: node for node in found.used}, network, found.fat_tree)
    used = found.used
    if len(used) > MOST_HOSTS:
        raise UsageError(f"{len(used)} nodes take part; at most {MOST_HOSTS} hosts are laid out")
    told = f"places of {found.nodes} nodes: {len(used)} take part, and become h0 to h{len(used) - 1} in their order"
    return HostLayout({node: number for number, node in enumerate(used)}, (told, *_places_lost(found)))


def _places_lost(found: Found) -> tuple[str, ...]:
    if not found.fat_tree:
        return ()
    count = len(found.fat_tree.failed)
    return (f"{count} x failure of a link: hosts are not where the nodes are; add `link-down` to `faults`",)


def _given(found: Found, hosts: str) -> dict[int, int]:
    host_of: dict[int, int] = {}
    for word in hosts.split(","):
        pair = _PAIR.fullmatch(word.strip())
        host = parse_host(pair[2]) if pair else None
        if pair is None or host is None:
            raise UsageError(f"--hosts: {word!r} must be same, used, or pairs such as 103=h0,34=h4")
        if int(pair[1]) in host_of or host in host_of.values():
            raise UsageError(f"--hosts: {word}: the node or the host is there twice")
        if host >= MOST_HOSTS:
            raise UsageError(f"--hosts: {pair[2]} is beyond h{MOST_HOSTS - 1}")
        host_of[int(pair[1])] = host
    if missing := next((node for node in found.used if node not in host_of), None):
        raise UsageError(f"--hosts: node {missing} takes part and has no host")
    return host_of
