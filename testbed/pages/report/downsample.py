"""Fewer values for long runs, without hiding anything: of each group the mean, the least and the greatest. Pure.

Where something broke, none is left out: the run of an hour can be looked at there as closely as one of a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

MOST_VALUES = 1200
"""Values of a line: more than a wide page has pixels for."""
MOST_FINE = 1200
"""Further values where something broke."""
_DIGITS = 4

Values = Sequence[float | None]


def group_size(count: int, most: int = MOST_VALUES) -> int:
    """How many values become one."""
    return max(1, ceil(count / most))


def groups(count: int, fine: Iterable[range] = (), most: int = MOST_VALUES, most_fine: int = MOST_FINE) -> list[int]:
    """Where groups of values begin, and `count`: all as large as `group_size` says, but for those in `fine`, where
    each value is a group. Of `fine` the first ones, up to `most_fine` values."""
    begins = set(range(0, count, group_size(count, most)))
    for stretch in fine if len(begins) < count else ():
        inside = range(max(stretch.start, 0), min(stretch.stop, count))
        most_fine -= len(inside)
        if most_fine < 0:
            break
        begins.update(inside, (inside.stop,) if inside else ())
    return [*sorted(begins - {count}), count]


def downsampled(values: Values, ends: Sequence[int]) -> dict[str, Any]:
    """`v`, and where several values become one `lo` and `hi`. A group without a known value is None."""
    if len(ends) > len(values):
        return {"v": [_or_none(value, rounded) for value in values]}
    known = [[value for value in values[begin:end] if value is not None] for begin, end in pairwise(ends)]
    means = [rounded(sum(group) / len(group)) if group else None for group in known]
    low, high = ([rounded(pick(group)) if group else None for group in known] for pick in (min, max))
    return {"v": means, "lo": low, "hi": high}


def rounded(value: float) -> float | int:
    """To four digits: finer than any pixel. Whole numbers are written as such, which is shorter."""
    if value == 0:
        return 0
    digits = _DIGITS - 1 - floor(log10(abs(value)))
    short = round(value, digits)
    return int(short) if short == int(short) else short


def _or_none(value: float | None, make: Callable[[float], float]) -> float | None:
    return None if value is None else make(value)
