"""How the switches of a plane hang together, for views: tiers, pods, and what joins one tier to the next.

All of it is found by walking the cables of a family, so a view needs no family's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mrc_testbed.topos.graph import Family, SwitchPlace
from mrc_testbed.topos.units import plural

_TIER = re.compile(r"T\d")


class Pod(NamedTuple):
    """Switches that hang together below the highest tier. `tiers`: their numbers by tier, the lowest tier first."""

    tiers: tuple[tuple[int, ...], ...]


class TierPair(NamedTuple):
    """Cables between two tiers. `whole`: each lower switch is linked to each upper one, of its plane or, where
    `in_pods`, of its pod. `uplinks`: what the lower switch `first` is linked to. `shares`: their rates, in shares of
    `port_rate`."""

    lower: int
    upper: int
    cables: int
    whole: bool
    in_pods: bool
    first: SwitchPlace
    uplinks: tuple[SwitchPlace, ...]
    shares: tuple[float, ...]


def pods(family: Family) -> tuple[Pod, ...]:
    """The pods of a plane, in the order of their first switches; none where nothing but a T0 would be in one, or all
    switches in the same one."""
    top = len(family.tiers) - 1
    parts = _parts(family, top)
    if len(parts) < 2 or all(len(part) == 1 for part in parts):
        return ()
    return tuple(
        Pod(tuple(tuple(place.number for place in part if place.tier == tier) for tier in range(top))) for part in parts
    )


def _parts(family: Family, top: int) -> list[list[SwitchPlace]]:
    """What hangs together without the switches of tier `top`."""
    beside: dict[SwitchPlace, list[SwitchPlace]] = {place: [] for place in family.switches() if place.tier < top}
    for lower, upper, _ in family.cables():
        if lower in beside and upper in beside:
            beside[lower].append(upper)
            beside[upper].append(lower)
    seen: set[SwitchPlace] = set()
    found = []
    for place in beside:
        part, ahead = [], [place]
        while ahead:
            next_one = ahead.pop()
            if next_one not in seen:
                seen.add(next_one)
                part.append(next_one)
                ahead += beside[next_one]
        if part:
            found.append(sorted(part))
    return found


def joins(family: Family) -> list[TierPair]:
    """What joins the tiers of a plane, the lowest first."""
    pod_of = {
        SwitchPlace(tier, number): pod
        for pod, parts in enumerate(pods(family))
        for tier, numbers in enumerate(parts.tiers)
        for number in numbers
    }
    cables = list(family.cables())
    found = []
    for lower, upper in sorted({(cable.lower.tier, cable.upper.tier) for cable in cables}):
        own = [cable for cable in cables if (cable.lower.tier, cable.upper.tier) == (lower, upper)]
        pairs = {(cable.lower, cable.upper) for cable in own}
        first = min(low for low, _ in pairs)
        ups = tuple(sorted(up for low, up in pairs if low == first))
        in_pods = bool(pod_of) and all(low in pod_of and pod_of.get(up) == pod_of[low] for low, up in pairs)
        most = _pairs(family, pod_of, lower, upper) if in_pods else family.tiers[lower] * family.tiers[upper]
        shares = tuple(sorted({cable.share for cable in own}))
        found.append(TierPair(lower, upper, len(own), len(pairs) == most, in_pods, first, ups, shares))
    return found


def _pairs(family: Family, pod_of: dict[SwitchPlace, int], lower: int, upper: int) -> int:
    """Pairs of switches of two tiers within pods."""
    low, up = (Counter(pod for place, pod in pod_of.items() if place.tier == tier) for tier in (lower, upper))
    return sum(low[pod] * up[pod] for pod in low)


def title(family: Family, tier: int) -> str:
    """What a switch of a tier is called: `T2`, `rail switch`."""
    return family.titles[tier] if tier < len(family.titles) else f"T{tier}"


def titles(family: Family) -> list[str]:
    """By tier, of two at least: a plane of one tier has none of the next."""
    return [title(family, tier) for tier in range(len(_counts(family)))]


def tier_counts(family: Family) -> list[str]:
    """`4 T0`, `2 T1`, or `4 rail switches`, by tier."""
    named = zip(_counts(family), titles(family), strict=True)
    return [f"{count} {name}" if _TIER.fullmatch(name) else plural(count, name) for count, name in named if count]


def switches_text(family: Family) -> str:
    """`2 T0 and 4 T1 switches`, `4 rail switches and 2 spines`."""
    *first, last = tier_counts(family)
    ends = " switches" if _TIER.fullmatch(last.split()[-1]) else ""
    return f"{' and '.join(filter(None, (', '.join(first), last)))}{ends}"


def way_word(family: Family) -> str:
    """What the number of a way is called: over two tiers it is that of a T0's uplink."""
    return "uplink" if len(family.tiers) <= len(("T0", "T1")) else "way"


def _counts(family: Family) -> list[int]:
    return [*family.tiers, 0] if len(family.tiers) == 1 else list(family.tiers)


def is_run(numbers: Sequence[int]) -> bool:
    """Each number is one more than that before it."""
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


def hosts_in_runs(family: Family) -> bool:
    """Each T0 has hosts that follow each other."""
    return all(map(is_run, family.below))


def spread(numbers: Iterable[int]) -> str:
    """`4`, or `2 to 4` where they differ."""
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
