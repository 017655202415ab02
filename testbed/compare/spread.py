"""How far runs of one group lie apart, where their seeds differ: each draws another hash of flows. Pure.

A group's spread is by how much two of its runs differ, in the mean over all pairs, on logarithms: some per cent (Gini's
mean difference). Its interval is by the jackknife (J. W. Tukey, Annals of Mathematical Statistics 29, 1958): from each
run comes a pseudo-value, what it adds to the spread, and those have Student's interval. Two groups are compared by
their pseudo-values, seed by seed where they share seeds, else with Welch's. Neither asks for a normal distribution,
from which figures of hashed flows are far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import expm1, log
from statistics import geometric_mean, median

from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.compare.comparison import NEGLIGIBLE, RATIO, Comparison, ComparisonRow
from mrc_testbed.testbed.compare.figures import ComparedFigure
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.statistics import (
    Estimate,
    blocked_difference,
    difference,
    mean_estimate,
    paired,
)

ABOUT = (
    "Apart: by how much two runs with other seeds differ, in the mean, with a 95 % interval (jackknife). In virtual"
    " time the seed alone decides it, on a kernel the machine, too."
)
LEAST_SEEDS = 5
"""Fewer tell too little of a spread."""


@dataclass(frozen=True, slots=True)
class GroupSpread:
    """A figure in a group, a value a seed, the least first. `apart`: by how much two runs differ, in the mean, as a
    share. `reads`: `more` or `less` than in the base, beyond chance."""

    label: str
    values: tuple[float, ...]
    apart: Estimate
    reads: str = ""

    @property
    def median(self) -> float:
        """Half of the runs have less."""
        return median(self.values)


@dataclass(frozen=True, slots=True)
class FigureSpread:
    """A figure that some group spreads, in all groups, in the order of their columns."""

    figure: ComparedFigure
    groups: tuple[GroupSpread, ...]


def spreads(comparison: Comparison) -> tuple[FigureSpread, ...]:
    """Of the figures that are shown where there is little room; none unless each group has runs of five seeds."""
    groups = _groups(comparison)
    if not groups or comparison.unlike or any(len({run.seed for run in runs}) < LEAST_SEEDS for _, runs in groups):
        return ()
    base = 0 if comparison.alike else comparison.base
    found = (_spread(row, groups, base) for row in comparison.rows if row.figure.main and row.kind == RATIO)
    return tuple(one for one in found if one and any(group.apart.value >= NEGLIGIBLE for group in one.groups))


_Group = tuple[str, Sequence[ComparedRun]]


def _groups(comparison: Comparison) -> list[_Group]:
    """Runs of the same settings are one group here, although each of them is a column."""
    if comparison.alike:
        return [("all runs", [run for column in comparison.columns for run in column.counted])]
    return [(column.label, column.counted) for column in comparison.columns]


def _spread(row: ComparisonRow, groups: Sequence[_Group], base: int) -> FigureSpread | None:
    """None where a group has the figure of too few seeds."""
    by_seed = [_values(row.figure.key, runs) for _, runs in groups]
    if any(len(some) < LEAST_SEEDS for some in by_seed):
        return None
    parts = [dict(zip(some, pseudo_values(list(some.values())), strict=True)) for some in by_seed]
    spread = [
        GroupSpread(
            label,
            tuple(sorted(some.values())),
            mean_difference(list(own.values())),
            "" if place == base else _reads(own, parts[base]),
        )
        for place, ((label, _), some, own) in enumerate(zip(groups, by_seed, parts, strict=True))
    ]
    return FigureSpread(row.figure, tuple(spread))


def _values(key: str, runs: Sequence[ComparedRun]) -> dict[int, float]:
    """By seed, of several runs with it their mean."""
    found = gathered((run.seed, run.figures.values[key]) for run in runs if key in run.figures.values)
    return {seed: geometric_mean(some) for seed, some in found.items()}


def pseudo_values(values: Sequence[float]) -> list[float]:
    """What each of three or more positive numbers adds to their mean difference on logarithms, which is the mean of
    these."""
    logs = [log(value) for value in values]
    size = len(logs)
    from_others = [sum(abs(one - other) for other in logs) for one in logs]
    whole = sum(from_others) / 2
    without = [2 * (whole - own) / ((size - 1) * (size - 2)) for own in from_others]
    return [2 * whole / (size - 1) - (size - 1) * one for one in without]


def mean_difference(parts: Sequence[float]) -> Estimate:
    """Of what each adds, as a share; none is below 0."""
    return mean_estimate(parts).mapped(lambda value: expm1(max(value, 0.0)))


def _reads(parts: Mapping[int, float], base: Mapping[int, float]) -> str:
    """Of pairs with the same seed where groups share them."""
    ours, theirs = ({seed: (part,) for seed, part in each.items()} for each in (parts, base))
    pairs = paired(ours, theirs)
    found = blocked_difference(ours, theirs) if pairs else difference(list(parts.values()), list(base.values()))
    if not found.clear_of(0.0) or abs(found.value) < NEGLIGIBLE:
        return ""
    return "more" if found.value > 0 else "less"


def apart_words(group: GroupSpread) -> str:
    """`18 % (9.1 % to 26 %), more`; without an interval the value alone."""
    low, high = group.apart.low, group.apart.high
    interval = "" if low is None or high is None else f" ({_share(low)} to {_share(high)})"
    return f"{_share(group.apart.value)}{interval}{', ' if group.reads else ''}{group.reads}"


def _share(value: float) -> str:
    return f"{number(100 * value, 2)} %"
