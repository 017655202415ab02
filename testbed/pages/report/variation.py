"""Fewer changes of state for very long or restless runs, and nothing hidden that matters. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import inf

IN_USE, RESTING, MIXED = "G", "S", "M"
"""MIXED: to and fro between the other two, quicker than it could be drawn."""
MOST_CHANGES = 40_000
"""Half a megabyte of a page."""
_VARIES = IN_USE + RESTING
_FIRST_GRAIN_S, _GRAINS = 0.05, 9
"""Each grain is twice the one before: up to 12.8 s."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A row: `first` is its state before the first of its changes; each change has a time (s) and a letter of
    `states`."""

    label: str
    first: str
    times: Sequence[float]
    states: str


Groups = dict[str, list[Timeline]]


def bounded(groups: Groups, most: int = MOST_CHANGES, speed: int = 1) -> tuple[Groups, float, int]:
    """At most `most` changes: short stays in use and at rest that follow each other become one, MIXED; then, if it
    must be, the rows with most changes are left out. Returns the groups, what a short stay was in s (0: nothing was
    merged), and how many rows are left out."""
    grain_s = _grain(groups, _size(groups) - most, speed)
    if grain_s:
        groups = {title: [_merged(row, grain_s) for row in rows] for title, rows in groups.items()}
    left_out = 0
    while _size(groups) > most:
        title = max(groups, key=lambda name: max((len(row.times) for row in groups[name]), default=0))
        ranked = sorted(groups[title], key=lambda row: len(row.times))
        groups = {**groups, title: ranked[:-1]}
        left_out += 1
    return groups, grain_s, left_out


def _size(groups: Mapping[str, Sequence[Timeline]]) -> int:
    return sum(len(row.times) for rows in groups.values() for row in rows)


def _grain(groups: Groups, too_many: int, speed: int) -> float:
    """The least of some grains that takes away `too_many` changes, or the longest; 0 if there are not too many."""
    if too_many <= 0:
        return 0.0
    grains: list[float] = [_FIRST_GRAIN_S / speed * (1 << turn) for turn in range(_GRAINS)]
    longer = (max(stay, stay_before) for rows in groups.values() for row in rows for stay_before, stay in _pairs(row))
    gone = Counter(bisect_right(grains, stay_s) for stay_s in longer)
    fewer = accumulate(gone[place] for place in range(_GRAINS))
    enough = (grain for grain, number in zip(grains, fewer, strict=True) if number >= too_many)
    return next(enough, grains[-1])


def _pairs(row: Timeline) -> Iterator[tuple[float, float]]:
    """How long stays were that both are in use or at rest, and follow each other."""
    before_s = inf
    for state, stay_s in zip(row.states, _stays(row), strict=True):
        now_s = stay_s if state in _VARIES else inf
        yield before_s, now_s
        before_s = now_s


def _stays(row: Timeline) -> Iterator[float]:
    return (end - begin for begin, end in pairwise(chain(row.times, (inf,))))


def _merged(row: Timeline, grain_s: float) -> Timeline:
    times, states = array("d"), bytearray()
    short_before = False
    for t, state, stay_s in zip(row.times, row.states, _stays(row), strict=True):
        short = state in _VARIES and stay_s < grain_s
        if short and short_before:
            states[-1] = ord(MIXED)
        else:
            times.append(t)
            states += state.encode()
        short_before = short
    return Timeline(row.label, row.first, times, states.decode())
