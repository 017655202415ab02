"""Fewer changes of state for very long or restless runs, and nothing hidden that matters. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

IN_USE, RESTING, MIXED = "G", "S", "M"
"""MIXED: to and fro between the other two, quicker than it could be drawn."""
MOST_CHANGES = 40_000
"""Half a megabyte of a page."""
_FIRST_GRAIN_S, _LAST_GRAIN_S = 0.05, 10.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """A row: `first` is its state before the first of its `changes`, (seconds, state)."""

    label: str
    first: str
    changes: tuple[tuple[float, str], ...]


Groups = dict[str, list[Timeline]]


def bounded(groups: Groups, most: int = MOST_CHANGES, speed: int = 1) -> tuple[Groups, float, int]:
    """At most so many changes: short stays in use and at rest that follow each other become one, MIXED; then, if it
    must be, the rows with most changes are left out. Returns the groups, what a short stay was in s (0: nothing was
    merged), and how many rows are left out."""
    grain_s = 0.0
    while _size(groups) > most and grain_s < _LAST_GRAIN_S / speed:
        grain_s = 2 * grain_s or _FIRST_GRAIN_S / speed
        groups = {title: [_merged(row, grain_s) for row in rows] for title, rows in groups.items()}
    left_out = 0
    while _size(groups) > most:
        title = max(groups, key=lambda name: max((len(row.changes) for row in groups[name]), default=0))
        ranked = sorted(groups[title], key=lambda row: len(row.changes))
        groups = {**groups, title: ranked[:-1]}
        left_out += 1
    return groups, grain_s, left_out


def _size(groups: Mapping[str, Sequence[Timeline]]) -> int:
    return sum(len(row.changes) for rows in groups.values() for row in rows)


def _merged(row: Timeline, grain_s: float) -> Timeline:
    ends = [*(t for t, _ in row.changes[1:]), inf]
    stays = [(t, state, end - t) for (t, state), end in zip(row.changes, ends, strict=True)]
    kept: list[tuple[float, str]] = []
    for varies, group in groupby(stays, lambda stay: stay[1] in (IN_USE, RESTING, MIXED) and stay[2] < grain_s):
        parts = [(t, state) for t, state, _ in group]
        kept += [(parts[0][0], MIXED)] if varies and len(parts) > 1 else parts
    return Timeline(row.label, row.first, tuple(kept))
