"""Which links between switches carry what hosts on one T0 send to those on another one, spread evenly over the ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from mrc_testbed.topos.graph import Family, SwitchPlace

Pair = tuple[int, int]
"""Two T0s, by number: where packets come from and where they go to."""
Crossing = tuple[SwitchPlace, SwitchPlace]
"""A link between switches in one of its directions."""


class Bundle(NamedTuple):
    """Links of a plane that the same ways cross, so they are loaded alike. `parts`: by pair of T0s, which part of what
    it sends crosses any of them; `rate`: of all, at that of the slowest, in shares of the port rate."""

    parts: Mapping[Pair, float]
    rate: float


def bundles(family: Family, pairs: Collection[Pair]) -> Iterator[Bundle]:
    """The links that ways between these T0s cross, those together that the same ways cross."""
    crossed: dict[Crossing, Counter[Pair]] = {}
    for pair in pairs:
        for way in family.ways_of(*pair):
            for crossing in pairwise(way):
                crossed.setdefault(crossing, Counter())[pair] += 1
    alike: dict[frozenset[tuple[Pair, int]], list[Crossing]] = {}
    for crossing, ways in crossed.items():
        alike.setdefault(frozenset(ways.items()), []).append(crossing)
    for together in alike.values():
        crossing = together[0]
        parts = {pair: len(together) * ways / len(family.ways_of(*pair)) for pair, ways in crossed[crossing].items()}
        yield Bundle(parts, len(together) * min(family.rate_shares[each] for each in together))


def busiest(family: Family, sent: Mapping[Pair, float]) -> float:
    """What the links that take longest carry, over their rate in shares of the port rate: 0 without any. `sent`: from
    T0 to T0, in a plane."""
    loads = (
        sum(sent[pair] * part for pair, part in bundle.parts.items()) / bundle.rate for bundle in bundles(family, sent)
    )
    return max(loads, default=0.0)
