"""Two tiers: every T0 of a plane is linked to every T1 of it. The number of a way is that of its T1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

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
from mrc_testbed.topos.shape import Shape


@dataclass(frozen=True)
class Clos2(Family):
    """`t0_groups` T0 switches and `t1` T1 switches, with `hosts_per_t0` hosts on each T0."""

    word: ClassVar[str] = "clos2"

    t0_groups: int = family_key("T0 switches of a plane", 2)
    t1: int = family_key("T1 switches of a plane", 4)
    hosts_per_t0: int = family_key("hosts below each T0", 4)
    t1_speed: tuple[float, ...] = family_key(
        "rate of the links of a T1, a share of `port_rate`; a list is repeated over the T1s", "50 %", FULL_SPEED
    )

    def __post_init__(self) -> None:
        within("t0_groups", self.t0_groups, 1, MAX_INDEX, "a uSID has 8 bits for the T0 index")
        within("t1", self.t1, 0, MAX_INDEX, "a uSID has 8 bits for the T1 index")
        within("hosts_per_t0", self.hosts_per_t0, 1, MAX_INDEX, "a uSID has 8 bits for the host downlink")
        speeds("t1_speed", self.t1_speed)
        if self.t0_groups > 1 and self.t1 == 0:
            raise ShapeError("t1", "must be at least 1 where there is more than one T0 group")
        if self.hosts < 2:
            raise ShapeError("hosts_per_t0", "the fabric needs at least 2 hosts in all")

    @property
    def hosts(self) -> int:
        """As of `Family`."""
        return self.t0_groups * self.hosts_per_t0

    def t0_of(self, host: int) -> int:
        """As of `Family`: hosts fill one T0 after the other."""
        return host // self.hosts_per_t0

    def switches(self) -> Iterable[SwitchPlace]:
        """As of `Family`."""
        return places_of((self.t0_groups, self.t1))

    def cables(self) -> Iterator[Cable]:
        """As of `Family`: each T0 to all T1s."""
        for group in range(self.t0_groups):
            for t1 in range(self.t1):
                yield Cable(SwitchPlace(0, group), SwitchPlace(1, t1), speed_of(self.t1_speed, t1))

    def ways(self, source: int, target: int) -> Iterator[Way]:
        """As of `Family`: one over each T1."""
        for t1 in range(self.t1):
            yield SwitchPlace(0, source), SwitchPlace(1, t1), SwitchPlace(0, target)

    def way_count(self, source: int, target: int) -> int:
        """As of `Family`."""
        return self.t1 if source != target else 1

    @cached_property
    def farthest(self) -> Way:
        """As of `Family`: all pairs of T0s are alike."""
        return max(self.ways_of(0, min(1, self.t0_groups - 1)), key=self.span)


def clos2_shape(
    planes: int, t0_groups: int, t1: int, hosts_per_t0: int, port_rate_bps: int, rtt_ns: int, *rest: Any, **named: Any
) -> Shape:
    """A fabric of this family. `rest`, `named`: the other fields of a Shape. Raises ShapeError."""
    return Shape(planes, Clos2(t0_groups, t1, hosts_per_t0), port_rate_bps, rtt_ns, *rest, **named)
