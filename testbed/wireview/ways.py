"""Which switches the EVs of a capture name, for captures in the folder of a run: its plan.json has the fabric.

Over two tiers an EV says it by itself. Over more the number of a way depends on the pair of hosts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.wireview.packet import Packet
from mrc_testbed.topos.families.registry import FAMILIES
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.names import parse_host, switch_name

_TOLD_BY_AN_EV = 2
"""Tiers."""
_MOST_ROWS = 32


@dataclass(frozen=True)
class TierWays:
    """The ways of a fabric, by the hosts at their ends."""

    family: Family

    def way(self, packet: Packet, source: str, target: str) -> tuple[str, ...]:
        """The switches on the path that the sender chose; none where it chose none, or for hosts of another fabric."""
        ends = [parse_host(name) for name in (source, target)]
        plane, _, number = packet.ev.partition("/")
        known = [host for host in ends if host is not None and host < self.family.hosts]
        if not packet.frame.outer or len(known) < len(ends) or not (plane.isdecimal() and number.isdecimal()):
            return ()
        ways = self.family.ways_of(*map(self.family.t0_of, known))
        return tuple(switch_name(int(plane), *place) for place in ways[int(number)]) if int(number) < len(ways) else ()


class WayCounts:
    """How many packets took each way."""

    def __init__(self, ways: TierWays) -> None:
        self._ways = ways
        self._counts: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def add(self, packet: Packet, source: str, target: str) -> None:
        """Count a packet, if its way is known."""
        way = self._ways.way(packet, source, target)
        if way:
            self._counts[packet.ev, way] += 1

    def lines(self) -> Iterator[str]:
        """A row for each way, the one with most packets first."""
        if not self._counts:
            return
        yield f"\n{'plane/uplink':<14}{'packets':>8}  switches"
        for (ev, way), packets in self._counts.most_common(_MOST_ROWS):
            yield f"{ev:<14}{packets:>8}  {' '.join(way)}"
        if len(self._counts) > _MOST_ROWS:
            yield f"... and {len(self._counts) - _MOST_ROWS} more ways"


def ways_of(capture: Path) -> TierWays | None:
    """Of the run in whose folder a capture is; None for another file, or where EVs say it by themselves."""
    try:
        shape = json.loads((capture.resolve().parent.parent / "plan.json").read_bytes())["shape"]
        (word, keys), *_ = shape["family"].items()
        lists = {key: tuple(value) for key, value in keys.items() if isinstance(value, list)}
        family = FAMILIES[word](**(keys | lists))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return TierWays(family) if len(family.tiers) > _TOLD_BY_AN_EV else None
