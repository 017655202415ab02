"""Fewer values for long runs, without hiding anything: of each group the mean, the least and the greatest. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log10
from typing import Any

MOST_VALUES = 1200
"""Values of a line: more than a wide page has pixels for."""
_DIGITS = 4

Values = Sequence[float | None]


def group_size(count: int, most: int = MOST_VALUES) -> int:
    """How many values become one."""
    return max(1, ceil(count / most))


def thinned(values: Values, size: int) -> dict[str, Any]:
    """`v`, and where several values become one `lo` and `hi`. A group of which nothing is known is None."""
    if size == 1:
        return {"v": [_or_none(value, rounded) for value in values]}
    groups = [[value for value in group if value is not None] for group in _groups(values, size)]
    means = [rounded(sum(group) / len(group)) if group else None for group in groups]
    low, high = ([rounded(pick(group)) if group else None for group in groups] for pick in (min, max))
    return {"v": means, "lo": low, "hi": high}


def rounded(value: float) -> float | int:
    """To four digits: finer than any pixel. Whole numbers are written as such, which is shorter."""
    if value == 0:
        return 0
    digits = _DIGITS - 1 - floor(log10(abs(value)))
    short = round(value, digits)
    return int(short) if short == int(short) else short


def _groups(values: Values, size: int) -> Iterator[Values]:
    return (values[begin : begin + size] for begin in range(0, len(values), size))


def _or_none(value: float | None, make: Callable[[float], float]) -> float | None:
    return None if value is None else make(value)
