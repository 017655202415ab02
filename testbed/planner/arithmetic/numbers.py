"""Numbers that say where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

LARGEST = 1e300
"""Of numbers that are given: larger ones are no floats, or would not be after a product."""


class Provenance(StrEnum):
    """Where a number comes from."""

    PUBLISHED = "published"
    DERIVED = "derived"
    MEASURED = "measured here"
    ASSUMED = "assumed"
    GIVEN = "given"
    """By the user, on the command line or in a file."""


@dataclass(frozen=True, slots=True)
class MarkedNumber:
    """A number with its unit and its mark.

    `source`: a publication, a file, or for a derived number how it follows. `low`, `high`: its range, where it has one;
    otherwise the value. `rests_on`: names of the numbers of parts that a derived one was made of.
    """

    value: float
    unit: str
    mark: Provenance
    source: str
    low: float
    high: float
    rests_on: tuple[str, ...] = ()

    @property
    def is_range(self) -> bool:
        return self.low < self.high


def exact(value: float, unit: str, how: str) -> MarkedNumber:
    """A derived number that rests on no part."""
    return MarkedNumber(value, unit, Provenance.DERIVED, how, value, value)


def derived(unit: str, how: str, rule: Callable[..., float], **parts: MarkedNumber) -> MarkedNumber:
    """`rule` of the numbers of parts, by name. The range of the result is that of `rule` over all choices of low and
    high ends, so it must rise or fall with each part throughout."""
    ends = product(*({part.low, part.high} for part in parts.values()))
    found = [rule(**dict(zip(parts, chosen, strict=True))) for chosen in ends]
    return MarkedNumber(
        value=rule(**{name: part.value for name, part in parts.items()}),
        unit=unit,
        mark=Provenance.DERIVED,
        source=how,
        low=min(found),
        high=max(found),
        rests_on=tuple(parts),
    )
