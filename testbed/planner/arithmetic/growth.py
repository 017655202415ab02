"""How designs grow with the number of GPUs: where they need a tier more, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mrc_testbed.testbed.planner.arithmetic.clos import MOST_TIERS, reach
from mrc_testbed.testbed.planner.arithmetic.design import Design


@dataclass(frozen=True, slots=True)
class Stretch:
    """The sizes, in NICs, that take the same tiers: from `fewest` to that of `full`, which is the network without a
    free port. Below it the cost per NIC is the same, up to rounding to whole switches."""

    fewest: int
    full: Design


def family(design: Design) -> tuple[int, str, int]:
    """What designs of any size and tiers have in common: split over planes, kind of switch, number of ports."""
    return design.clos.planes, design.switch.name, design.clos.ports


def families(made: Iterable[Design]) -> list[Design]:
    """The first design of each family."""
    found: dict[tuple[int, str, int], Design] = {}
    for design in made:
        found.setdefault(family(design), design)
    return list(found.values())


def stretches(design: Design) -> Sequence[Stretch]:
    """Of the design's family, from one tier to MOST_TIERS, at each size the fewest that reach."""
    found, fewest = [], 1
    for tiers in range(1, MOST_TIERS + 1):
        most = reach(tiers, design.clos.ports)
        if most >= fewest:
            clos = replace(design.clos, tiers=tiers, nics=most)
            found.append(Stretch(fewest, replace(design, clos=clos)))
            fewest = most + 1
    return found
