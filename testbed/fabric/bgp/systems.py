"""Which autonomous system each switch is of (RFC 7938, 5.2). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.testbed.switching.options import BgpOptions
from mrc_testbed.topos.graph import Family, SwitchPlace
from mrc_testbed.topos.plan import Plan

_FIRST_PRIVATE_AS = 4_200_000_000
"""RFC 6996."""
_PLANE_SHIFT = 16
_TIER_SHIFT = 12
"""Behind the numbers of T0, where the switches or pods of each tier above have theirs."""


def autonomous_systems(plan: Plan, bgp: BgpOptions) -> dict[str, int]:
    """The number of each switch's autonomous system, by the switch's name.

    Each T0 is one of its own. As a rule the highest switches of a plane are one together, and so are those of a pod in
    a tier between: what is joined by links below them. So no route comes down to where it has been. With `t1_as: each`
    every switch is one of its own.
    """
    family = plan.shape.family
    numbers = _numbers(family, bgp)
    return {
        switch.name: _FIRST_PRIVATE_AS + (switch.plane << _PLANE_SHIFT) + numbers[switch.place]
        for switch in plan.switches
    }


def _numbers(family: Family, bgp: BgpOptions) -> dict[SwitchPlace, int]:
    """In one plane."""
    found: dict[SwitchPlace, int] = {}
    top = len(family.tiers) - 1
    for tier, count in enumerate(family.tiers):
        places = [SwitchPlace(tier, number) for number in range(count)]
        if tier == 0:
            found |= {place: place.number + 1 for place in places}
        elif bgp.t1_as == "each":
            found |= {place: (tier << _TIER_SHIFT) + place.number for place in places}
        elif tier == top:
            found |= dict.fromkeys(places, 0)
        else:
            pods = _pods(family, tier)
            found |= {place: (tier << _TIER_SHIFT) + pods[place] for place in places}
    return found


def _pods(family: Family, tier: int) -> dict[SwitchPlace, int]:
    """The number of the pod of each switch up to this tier: switches that links between such switches join."""
    beside: dict[SwitchPlace, list[SwitchPlace]] = {}
    for cable in family.cables():
        if cable.lower.tier <= tier and cable.upper.tier <= tier:
            beside.setdefault(cable.lower, []).append(cable.upper)
            beside.setdefault(cable.upper, []).append(cable.lower)
    found: dict[SwitchPlace, int] = {}
    pods = 0
    for place in family.switches():
        if place.tier <= tier and place not in found:
            found |= dict.fromkeys(_joined(place, beside), pods)
            pods += 1
    return found


def _joined(start: SwitchPlace, beside: dict[SwitchPlace, list[SwitchPlace]]) -> Iterable[SwitchPlace]:
    found, waiting = {start}, [start]
    while waiting:
        new = [place for place in beside.get(waiting.pop(), ()) if place not in found]
        found.update(new)
        waiting += new
    return found
