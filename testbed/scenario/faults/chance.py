"""Chance for what a scenario leaves open: which targets, which times. All of it follows from the seed and names."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A stream of chance of its own for every (seed, names): what one fault draws does not change with the others.

    Only `Random.random` is used, whose sequence is the same for one seed in every version of Python.
    """

    def __init__(self, seed: int, *names: str) -> None:
        self._seed = seed
        self._names = names
        self._random = Random("\n".join((str(seed), *names)))  # not for secrets

    def of(self, name: str) -> Chance:
        """The stream of a part; it does not depend on what this one has given."""
        return Chance(self._seed, *self._names, name)

    def choose(self, items: Sequence[T], count: int) -> list[T]:
        """`count` of the items without replacement, in the order of the items. Raises ValueError for too many."""
        if count > len(items):
            raise ValueError(f"{count} of {len(items)} cannot be chosen")
        left = list(range(len(items)))
        chosen = sorted(left.pop(int(self._random.random() * len(left))) for _ in range(count))
        return [items[index] for index in chosen]

    def gap_ns(self, mean_ns: float) -> int:
        """The time to the next event of a Poisson process, at least 1 ns."""
        return max(1, round(-log(1.0 - self._random.random()) * mean_ns))

    def around(self, value: float, share: float) -> int:
        """`value`, up to `share` of it less or more, each length equally likely."""
        return round(value * (1 + share * (2 * self._random.random() - 1)))
