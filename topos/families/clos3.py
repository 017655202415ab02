"""Three tiers: pods of T0s and T1s, joined by T2s.

Switches are numbered pod by pod. In a pod every T0 is linked to every T1. T1 number x of each pod is linked to the T2s
of column x, which are t2 / t1 in a row: number x * t2 / t1 and those that follow.

The number of a way within a pod is that of its T1 in the pod; between two pods it is that of its T2, and both T1s are
those of the T2's column.
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

_BITS = "a uSID has 8 bits for the number of a switch"


@dataclass(frozen=True)
class Clos3(Family):
    """`pods` times `t0` T0s and `t1` T1s, with `hosts_per_t0` hosts on each T0, and `t2` T2s above all pods."""

    word: ClassVar[str] = "clos3"

    pods: int = family_key("pods of a plane", 2)
    t0: int = family_key("T0 switches of a pod", 2)
    t1: int = family_key("T1 switches of a pod", 2)
    t2: int = family_key("T2 switches of a plane, a multiple of `t1`: T1 number x of each pod is linked to column x", 4)
    hosts_per_t0: int = family_key("hosts below each T0", 2)
    t1_speed: tuple[float, ...] = family_key(
        "rate of the links from T0s to a T1, a share of `port_rate`; a list is repeated over the T1s of a pod",
        "50 %",
        FULL_SPEED,
    )
    t2_speed: tuple[float, ...] = family_key(
        "rate of the links of a T2, a share of `port_rate`; a list is repeated over the T2s", "50 %", FULL_SPEED
    )

    def __post_init__(self) -> None:
        within("pods", self.pods, 1, MAX_INDEX, _BITS)
        within("t0", self.t0, 1, MAX_INDEX // self.pods, f"{_BITS}, and there are {self.pods} pods")
        within("t1", self.t1, 1, MAX_INDEX // self.pods, f"{_BITS}, and there are {self.pods} pods")
        within("t2", self.t2, 0, MAX_INDEX, _BITS)
        within("hosts_per_t0", self.hosts_per_t0, 1, MAX_INDEX, "a uSID has 8 bits for the host downlink")
        speeds("t1_speed", self.t1_speed)
        speeds("t2_speed", self.t2_speed)
        if self.t2 % self.t1:
            raise ShapeError("t2", f"{self.t2} is no multiple of t1, {self.t1}: each T1 of a pod has as many T2s")
        if self.pods > 1 and self.t2 == 0:
            raise ShapeError("t2", f"must be at least t1, {self.t1}, where there is more than one pod")
        if self.hosts < 2:
            raise ShapeError("hosts_per_t0", "the fabric needs at least 2 hosts in all")

    @property
    def column(self) -> int:
        """Number of T2s that a T1 is linked to."""
        return self.t2 // self.t1

    @property
    def hosts(self) -> int:
        """As of `Family`."""
        return self.pods * self.t0 * self.hosts_per_t0

    def t0_of(self, host: int) -> int:
        """As of `Family`: hosts fill one T0 after the other, pod by pod."""
        return host // self.hosts_per_t0

    def switches(self) -> Iterable[SwitchPlace]:
        """As of `Family`."""
        return places_of((self.pods * self.t0, self.pods * self.t1, self.t2))

    def cables(self) -> Iterator[Cable]:
        """As of `Family`: those of each pod, then those between pods."""
        for t0 in range(self.pods * self.t0):
            for x in range(self.t1):
                yield Cable(SwitchPlace(0, t0), self._t1(t0 // self.t0, x), speed_of(self.t1_speed, x))
        for pod in range(self.pods):
            for t2 in range(self.t2):
                yield Cable(self._t1(pod, t2 // self.column), SwitchPlace(2, t2), speed_of(self.t2_speed, t2))

    def ways(self, source: int, target: int) -> Iterator[Way]:
        """As of `Family`: one over each T1 of the pod, or one over each T2."""
        one, other = SwitchPlace(0, source), SwitchPlace(0, target)
        pod, far = source // self.t0, target // self.t0
        if pod == far:
            for x in range(self.t1):
                yield one, self._t1(pod, x), other
            return
        for t2 in range(self.t2):
            x = t2 // self.column
            yield one, self._t1(pod, x), SwitchPlace(2, t2), self._t1(far, x), other

    def way_count(self, source: int, target: int) -> int:
        """As of `Family`."""
        if source == target:
            return 1
        return self.t1 if source // self.t0 == target // self.t0 else self.t2

    @cached_property
    def farthest(self) -> Way:
        """As of `Family`: all pods are alike, and so are all pairs of them."""
        pairs = (0, min(1, self.t0 - 1)), (0, self.t0 if self.pods > 1 else 0)
        return max((way for pair in pairs for way in self.ways_of(*pair)), key=self.span)

    def _t1(self, pod: int, x: int) -> SwitchPlace:
        return SwitchPlace(1, pod * self.t1 + x)
