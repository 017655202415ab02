"""Counting a Clos network: planes, each of the same tiers of one kind of switch, without oversubscription."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

MOST_TIERS = 4


@dataclass(frozen=True, slots=True)
class Clos:
    """`planes` separate fabrics of `tiers` tiers, of switches with `ports` ports; each of `nics` NICs has one port in
    every plane. Half of the ports of a switch go down and half up; those of the top tier all go down.

    Counts are the least that carry all NICs; where the fabric is not full, even wiring may take more (`even_switches`;
    the MRC paper, section 2, has the full sizes).
    """

    planes: int
    tiers: int
    ports: int
    nics: int

    @property
    def half(self) -> int:
        """Ports of a switch that go down, and as many up."""
        return self.ports // 2

    @property
    def most_nics(self) -> int:
        """NICs that this many tiers can have."""
        return reach(self.tiers, self.ports)

    @property
    def fits(self) -> bool:
        return self.nics <= self.most_nics

    @property
    def tier_switches(self) -> tuple[int, ...]:
        """Switches of each tier, T0 first, all planes together."""
        if self.tiers == 1:
            return (self.planes,)
        lowest = ceil(self.nics / self.half)
        top = ceil(lowest * self.half / self.ports)
        return tuple(self.planes * count for count in (*[lowest] * (self.tiers - 1), top))

    @property
    def uplinks_to_one(self) -> tuple[int, int]:
        """Fewest and most links of a switch below the top tier to one top switch that it reaches."""
        reached = self._top_of_group
        return self.half // reached, ceil(self.half / reached)

    @property
    def even_switches(self) -> tuple[int, ...]:
        """Switches of each tier that even wiring takes: whole pods below the top, and as many top switches as divide
        the uplinks of those below them. No fewer than `tier_switches`."""
        if self.tiers == 1:
            return self.tier_switches
        lowest = ceil(self.nics / self.half)
        pods = [_multiple(lowest, self.half**tier) for tier in range(self.tiers - 1)]
        least = self._top_of_group
        even = next((count for count in range(least, self.half + 1) if self.half % count == 0), least)
        return tuple(self.planes * count for count in (*pods, self.half ** (self.tiers - 2) * even))

    @property
    def _top_of_group(self) -> int:
        """Top switches that a switch below them reaches: each of them has a link at least to every pod."""
        pods: int = ceil(self.nics / self.half ** (self.tiers - 1))
        return ceil(pods * self.half / self.ports)

    @property
    def switches(self) -> int:
        return sum(self.tier_switches)

    @property
    def links(self) -> int:
        """Cables as the switches see them, a port on each end: one a NIC, layer of cables and plane."""
        return self.nics * self.tiers * self.planes

    @property
    def switch_links(self) -> int:
        """Links that have a switch on both ends."""
        return self.nics * (self.tiers - 1) * self.planes

    @property
    def longest_path(self) -> int:
        """Switches between the two NICs that are farthest apart: up to the top and down again."""
        return 2 * self.tiers - 1

    @property
    def nics_below_t0(self) -> int:
        return min(self.nics, self.half if self.tiers > 1 else self.ports)

    @property
    def paths(self) -> int:
        """Ways between two NICs that meet only in the top tier: a plane and an uplink at every tier on the way up."""
        return self.planes * reach(self.tiers, self.ports) // self.ports


def _multiple(count: int, of: int) -> int:
    return ceil(count / of) * of


def reach(tiers: int, ports: int) -> int:
    """NICs that a fabric of `tiers` tiers of switches with `ports` ports can have."""
    reached = ports
    for _ in range(tiers - 1):
        reached *= ports // 2
    return reached


def least_tiers(nics: int, ports: int) -> int | None:
    """The fewest tiers that reach `nics` NICs; None if not even MOST_TIERS do."""
    return next((tiers for tiers in range(1, MOST_TIERS + 1) if reach(tiers, ports) >= nics), None)
