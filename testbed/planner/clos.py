"""Counting a Clos network: planes, each of the same tiers of one kind of switch, without oversubscription."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

MOST_TIERS = 4


@dataclass(frozen=True, slots=True)
class Clos:
    """`planes` separate fabrics of `tiers` tiers, of switches with `ports` ports; each of `nics` NICs has one port in
    every plane. Half of the ports of a switch go down and half up; those of the top tier all go down.

    Counts hold also where the fabric is not full, if its switches are wired evenly; wiring in whole pods of three and
    four tiers may take a few more (the MRC paper, section 2, has the full sizes).
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


def reach(tiers: int, ports: int) -> int:
    """NICs that a fabric of `tiers` tiers of switches with `ports` ports can have."""
    reached = ports
    for _ in range(tiers - 1):
        reached *= ports // 2
    return reached


def least_tiers(nics: int, ports: int) -> int | None:
    """The fewest tiers that reach `nics` NICs; None if not even MOST_TIERS do."""
    return next((tiers for tiers in range(1, MOST_TIERS + 1) if reach(tiers, ports) >= nics), None)
