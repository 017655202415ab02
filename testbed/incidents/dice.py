"""Chance of a draw: the same numbers for a seed on every machine and in every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Of a seed and names. Uses `Random.random` alone, whose sequence for a seed never changes."""

    def __init__(self, *names: int | str) -> None:
        self._names = names
        self._random = Random("\n".join(map(str, names)))  # not for secrets

    def of(self, *names: int | str) -> Dice:
        """That of a part, independent of draws from this one."""
        return Dice(*self._names, *names)

    def often(self, chance: float) -> bool:
        """True with this chance."""
        return self._random.random() < chance

    def one(self, items: Sequence[T]) -> T:
        """One of these, each equally likely."""
        return items[int(self._random.random() * len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """This number of them, each at most once, in their order. Raises ValueError for too many."""
        if count > len(items):
            raise ValueError(f"{count} of {len(items)} cannot be drawn")
        left = list(range(len(items)))
        return [
            items[place] for place in sorted(left.pop(int(self._random.random() * len(left))) for _ in range(count))
        ]

    def within(self, least: float, most: float) -> float:
        """Uniform between both."""
        return least + (most - least) * self._random.random()

    def magnitude(self, least: float, most: float) -> float:
        """Between both, log-uniform: each doubling is equally likely. To three digits."""
        drawn = exp(log(least) + (log(most) - log(least)) * self._random.random())
        return float(f"{min(max(drawn, least), most):.3g}")

    def whole(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return least + int(self._random.random() * (most - least + 1))
