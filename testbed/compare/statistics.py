"""How much one group of runs differs from another, with an interval for few repeats. Pure.

Ratios are of geometric means, with Welch's interval (B. L. Welch, Biometrika 34, 1947) on logarithms: times and rates
are positive, their errors are relative, and variances may differ. Where there are zeros, differences of means with the
same interval. With two or three repeats the intervals are wide.

Runs of several machines are compared machine by machine, and runs of groups that share seeds seed by seed: groups and
blocks add up (randomised blocks; R. A. Fisher, The Design of Experiments, 1935), so that a slow machine, or a seed that
hashes many flows onto one link, is no difference between groups. With one run of each group in a block this is
Student's paired test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import cos, exp, gamma, log, pi, sqrt, tan
from operator import mul
from statistics import fmean, variance
from typing import Any

CONFIDENCE = 0.95
ALIKE = "repeats alike"
"""Why there is no interval if all repeats of both groups are equal: coarse figures, such as counts, can be equal by
chance."""
ALONE = "a single run gives no interval"
_MOST_FREEDOM = 200
"""Beyond this the quantile hardly changes; it is kept constant, which makes intervals slightly wider: by 0.6 % at 95 %,
by 1.3 % at one in 1000."""
_ROUNDED = 1e-12
"""The rounding of floats, as a part of a number: differences that are nearer to each other are alike."""
_PARTS = 100
_HALVINGS = 45


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio or a difference with its interval; `why` there is no interval."""

    value: float
    low: float | None = None
    high: float | None = None
    why: str = ""

    def clear_of(self, nothing: float) -> bool:
        """The interval is known and excludes `nothing` (1 for a ratio, 0 for a difference)."""
        return self.low is not None and self.high is not None and not self.low <= nothing <= self.high

    def mapped(self, rising: Callable[[float], float]) -> Estimate:
        """The same on another scale, as of logarithms their numbers."""
        low, high = (None if end is None else rising(end) for end in (self.low, self.high))
        return Estimate(rising(self.value), low, high, self.why)


def ratio(of: Sequence[float], base: Sequence[float]) -> Estimate:
    """Of the geometric means of two groups of positive numbers."""
    return difference([log(value) for value in of], [log(value) for value in base]).mapped(exp)


def difference(of: Sequence[float], base: Sequence[float]) -> Estimate:
    """Of the means of two groups, none of them empty."""
    value = fmean(of) - fmean(base)
    if min(len(of), len(base)) < 2:
        return Estimate(value, why=ALONE)
    parts = [variance(group) / len(group) for group in (of, base)]
    total = sum(parts)
    if not total:
        return Estimate(value, why=ALIKE)
    sizes = (len(of), len(base))
    freedom = total**2 / sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    reach = t_quantile(round(freedom, 3)) * sqrt(total)
    return Estimate(value, value - reach, value + reach)


def mean_estimate(values: Sequence[float]) -> Estimate:
    """The mean of a group that is not empty, with Student's interval: of pairs whose other part is 0."""
    return blocked_difference({at: (one,) for at, one in enumerate(values)}, {at: (0.0,) for at in range(len(values))})


Blocks = Mapping[Any, Sequence[float]]
"""Values of a group by what they have in common with those of others: the machine, or the machine and the seed."""


def shared(of: Blocks, base: Blocks) -> int:
    """How many blocks have values of both groups."""
    return sum(bool(of[block] and base.get(block)) for block in of)


def paired(of: Blocks, base: Blocks) -> bool:
    """Whether two or more blocks have both groups, and no more of them have one alone."""
    both = shared(of, base)
    return both >= 2 and 2 * both >= len(of.keys() | base.keys())


def blocked_ratio(of: Blocks, base: Blocks) -> Estimate:
    """As `ratio`, of groups that share a block."""
    of, base = ({at: [log(value) for value in some] for at, some in blocks.items()} for blocks in (of, base))
    return blocked_difference(of, base).mapped(exp)


def blocked_difference(of: Blocks, base: Blocks) -> Estimate:
    """As `difference`, of groups that share a block: the mean of the differences in each block, weighted by how well it
    knows its own. What other blocks have of one group alone says nothing here."""
    pairs = [(of[block], base[block]) for block in of if of[block] and base.get(block)]
    weights = [len(ours) * len(theirs) / (len(ours) + len(theirs)) for ours, theirs in pairs]
    differences = [fmean(ours) - fmean(theirs) for ours, theirs in pairs]
    value = sum(map(mul, weights, differences)) / sum(weights)
    freedom = sum(len(group) for pair in pairs for group in pair) - len(pairs) - 1
    if freedom < 1:
        return Estimate(value, why=ALONE)
    within = sum((one - fmean(group)) ** 2 for pair in pairs for group in pair for one in group)
    between = sum(weight * (each - value) ** 2 for weight, each in zip(weights, differences, strict=True))
    largest = max(abs(one) for pair in pairs for group in pair for one in group)
    if within + between <= (_ROUNDED * largest) ** 2:
        return Estimate(value, why=ALIKE)
    reach = t_quantile(freedom) * sqrt((within + between) / freedom / sum(weights))
    return Estimate(value, value - reach, value + reach)


@cache
def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's t distribution; `freedom` is at least 1 and may be a fraction.

    With t = sqrt(freedom) tan(angle) the density is that of cos(angle) ** (freedom - 1), which is smooth up to the
    angle sought.
    """
    freedom = min(freedom, _MOST_FREEDOM)
    whole = sqrt(pi) * gamma(freedom / 2) / gamma((freedom + 1) / 2) / 2
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < confidence * whole else (low, middle)
    return sqrt(freedom) * tan(low)


def _below(angle: float, freedom: float) -> float:
    """The integral of cos ** (freedom - 1) from 0, by Simpson's rule."""
    step = angle / _PARTS
    at: list[float] = [cos(step * part) ** (freedom - 1) for part in range(_PARTS + 1)]
    return (at[0] + at[-1] + 4 * sum(at[1:-1:2]) + 2 * sum(at[2:-1:2])) * step / 3
