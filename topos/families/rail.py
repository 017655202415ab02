"""Rails: the NICs of one number of all nodes are on one switch, the rail switch; a spine joins the rails.

A host is the endpoint of one NIC, so a node with `rails` NICs is that many hosts: host number node * rails + rail.
Every rail switch is linked to every switch of the spine; the number of a way is that of its spine switch. Two hosts on
one rail have one switch between them. With `segments` the nodes of each segment have rail switches of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mrc_testbed.topos.graph import (
    FULL_SPEED,
    MAX_INDEX,
    Cable,
    Family,
    ShapeError,
    SwitchPlace,
    Way,
    family_key,
    places_of,
    speed_of,
    speeds,
    within,
)


@dataclass(frozen=True)
class Rail(Family):
    """`nodes` with `rails` NICs each, on `segments` times `rails` rail switches, which `spine` switches join."""

    word: ClassVar[str] = "rail"
    titles: ClassVar[tuple[str, ...]] = ("rail switch", "spine")

    rails: int = family_key("NICs of a node, and rail switches of a segment; a host is one NIC", 4)
    nodes: int = family_key("nodes in all", 4)
    spine: int = family_key("switches of a plane that join its rail switches", 4)
    segments: int = family_key("groups of nodes with rail switches of their own; it divides `nodes`", 2, 1)
    spine_speed: tuple[float, ...] = family_key(
        "rate of the links of a spine switch, a share of `port_rate`; a list is repeated over them", "50 %", FULL_SPEED
    )

    def __post_init__(self) -> None:
        bits = "a uSID has 8 bits for the number of a switch"
        within("rails", self.rails, 1, MAX_INDEX, bits)
        within("segments", self.segments, 1, MAX_INDEX // self.rails, f"{bits}, and there are {self.rails} rails")
        within("nodes", self.nodes, 1, MAX_INDEX * self.segments, "a uSID has 8 bits for the host downlink")
        within("spine", self.spine, 0, MAX_INDEX, bits)
        speeds("spine_speed", self.spine_speed)
        if self.nodes % self.segments:
            raise ShapeError("segments", f"{self.segments} does not divide the {self.nodes} nodes")
        if self.rails * self.segments > 1 and self.spine == 0:
            raise ShapeError("spine", "must be at least 1 where there is more than one rail switch")
        if self.hosts < 2:
            raise ShapeError("nodes", "the fabric needs at least 2 hosts in all")

    @property
    def hosts(self) -> int:
        """As of `Family`: NICs."""
        return self.nodes * self.rails

    @property
    def nics(self) -> int:
        """As of `Family`."""
        return self.rails

    def t0_of(self, host: int) -> int:
        """As of `Family`: the switch of its rail, in the segment of its node."""
        node, rail = divmod(host, self.rails)
        return node // (self.nodes // self.segments) * self.rails + rail

    def switches(self) -> Iterable[SwitchPlace]:
        """As of `Family`: rail switches segment by segment, then the spine."""
        return places_of((self.segments * self.rails, self.spine))

    def cables(self) -> Iterator[Cable]:
        """As of `Family`: each rail switch to the whole spine."""
        for t0 in range(self.segments * self.rails):
            for spine in range(self.spine):
                yield Cable(SwitchPlace(0, t0), SwitchPlace(1, spine), speed_of(self.spine_speed, spine))

    def ways(self, source: int, target: int) -> Iterator[Way]:
        """As of `Family`: one over each spine switch."""
        for spine in range(self.spine):
            yield SwitchPlace(0, source), SwitchPlace(1, spine), SwitchPlace(0, target)

    def way_count(self, source: int, target: int) -> int:
        """As of `Family`."""
        return self.spine if source != target else 1

    @cached_property
    def farthest(self) -> Way:
        """As of `Family`: all pairs of rail switches are alike."""
        return max(self.ways_of(0, min(1, self.rails * self.segments - 1)), key=self.span)
