"""Random choices of a scenario: targets and times. All derive from the seed and names."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A random stream for each (seed, names): draws of one fault do not affect others.

    Uses only `Random.random`, whose sequence for a seed is the same in every version of Python.
    """

    def __init__(self, seed: int, *names: str) -> None:
        self._seed = seed
        self._names = names
        self._random = Random("\n".join((str(seed), *names)))  # not for secrets

    def of(self, name: str) -> Chance:
        """The stream of a part, independent of draws from this one."""
        return Chance(self._seed, *self._names, name)

    def choose(self, items: Sequence[T], count: int) -> list[T]:
        """`count` of the items without replacement, in item order. Raises ValueError for too many."""
        if count > len(items):
            raise ValueError(f"{count} of {len(items)} cannot be chosen")
        left = list(range(len(items)))
        chosen = sorted(left.pop(int(self._random.random() * len(left))) for _ in range(count))
        return [items[index] for index in chosen]

    def gap_ns(self, mean_ns: float) -> int:
        """The time to the next event of a Poisson process, at least 1 ns."""
        return max(1, round(-log(1.0 - self._random.random()) * mean_ns))

    def up_to(self, most: int) -> int:
        """A whole number from 0 to `most`."""
        return int(self._random.random() * (most + 1))

    def around(self, value: float, share: float) -> int:
        """`value`, up to `share` of it less or more, uniformly distributed."""
        return round(value * (1 + share * (2 * self._random.random() - 1)))
