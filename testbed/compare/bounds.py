"""How much room the bounds of expectations leave to what runs show. Pure.

Of n draws of a normal distribution the next one lies beyond mean + t s sqrt(1 + 1/n) with a given chance, with the
quantile t of Student's distribution for n - 1 (G. J. Hahn, Journal of the American Statistical Association 64, 1969). A
bound beyond that place has room enough; the place itself is a bound that a right program crosses as rarely. What
happens in one run of many, such as a timer that fires at all, no spread of the others shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import ceil, floor, log10, sqrt
from statistics import fmean, stdev
from typing import Any

from testbed.checks.result import CheckResult, Status, Verdict
from testbed.compare.statistics import t_quantile

LEAST_RUNS = 5
"""With four the quantile for one in 1000 is above 10."""
USUAL_CHANCE = 0.001
OF_THE_BOUND = "of the bound"
_DIGITS = 3
_UPPER, _LOWER = ("<", "<="), (">", ">=")


class Room(StrEnum):
    """What a bound leaves, gravest first. ALIKE and EXACT tell of no spread: the runs show one value, or one value is
    wanted."""

    TIGHT = "tight"
    TOO_FEW = "too few runs"
    ALIKE = "all alike"
    EXACT = "exact"
    ENOUGH = "enough"


@dataclass(frozen=True)
class BoundRow:
    """An expectation in all runs that count, a number of `observed` for each. Where the bound differs from run to run,
    as `1.5 * clean.median`, all numbers are shares of it.

    `missed`: runs outside. `deviations`: from the mean to the bound, in standard deviations of a further run.
    `needed`: the bound that a further run crosses with the chance asked for. Both None without a spread.
    """

    name: str
    op: str
    unit: str
    bound: float
    observed: tuple[float, ...]
    missed: int
    room: Room
    deviations: float | None = None
    needed: float | None = None


@dataclass(frozen=True)
class BoundsOf:
    """The bounds of one scenario, in runs with the same settings. `left_out`: runs that the machine spoiled."""

    label: str
    runs: int
    left_out: int
    bounds: tuple[BoundRow, ...]


def bounds_of(label: str, verdicts: Iterable[Verdict], chance: float = USUAL_CHANCE) -> BoundsOf:
    """What repeats of one scenario say of its expectations. `chance`: that a right program crosses a bound in a run."""
    given = list(verdicts)
    believed = [verdict for verdict in given if verdict.fidelity.ok]
    checks: dict[str, list[CheckResult]] = {}
    for verdict in believed:
        for check in verdict.checks:
            if check.limit is not None and check.observed is not None:
                checks.setdefault(check.name, []).append(check)
    rows = (_row(name, found, chance) for name, found in checks.items())
    return BoundsOf(label, len(believed), len(given) - len(believed), tuple(rows))


def gravest(found: Iterable[BoundsOf]) -> Room:
    """Of all bounds; TOO_FEW if there is none, or no run of a scenario counts."""
    given = list(found)
    rooms = {row.room for one in given for row in one.bounds} | {Room.TOO_FEW for one in given if not one.runs}
    return next((room for room in Room if room in rooms), Room.TOO_FEW)


def bounds_document(found: Iterable[BoundsOf], chance: float) -> dict[str, Any]:
    """As JSON types."""
    return {"chance": chance, "scenarios": [asdict(one) for one in found]}


def _row(name: str, checks: Sequence[CheckResult], chance: float) -> BoundRow:
    op = checks[0].expected.partition(" ")[0]
    missed = sum(check.status is Status.FAIL for check in checks)
    pairs = [(check.observed or 0.0, check.limit or 0.0) for check in checks]
    bound, unit = pairs[0][1], checks[0].unit
    if any(limit != bound for _, limit in pairs):
        pairs = [(seen / limit, 1.0) for seen, limit in pairs if limit]
        bound, unit = 1.0, OF_THE_BOUND
    observed = tuple(seen for seen, _ in pairs)
    room, deviations, needed = _judged(op, bound, observed, missed, chance)
    return BoundRow(name, op, unit, bound, observed, missed, room, deviations, needed)


def _judged(
    op: str, bound: float, observed: Sequence[float], missed: int, chance: float
) -> tuple[Room, float | None, float | None]:
    if op not in (*_UPPER, *_LOWER):
        return Room.TIGHT if missed else Room.EXACT, None, None
    if len(observed) < LEAST_RUNS:
        return Room.TIGHT if missed else Room.TOO_FEW, None, None
    if len(set(observed)) == 1:
        return Room.TIGHT if missed else Room.ALIKE, None, None
    outward = 1 if op in _UPPER else -1
    deviation = stdev(observed) * sqrt(1 + 1 / len(observed))
    place = fmean(observed) + outward * t_quantile(len(observed) - 1, 1 - 2 * chance) * deviation
    enough = outward * (bound - place) >= 0 and not missed
    room = Room.ENOUGH if enough else Room.TIGHT
    return room, outward * (bound - fmean(observed)) / deviation, _rounded(place, outward, observed)


def _rounded(place: float, outward: int, observed: Iterable[float]) -> float:
    """Outward: counts to the next whole number, others to three digits."""
    away = ceil if outward > 0 else floor
    if all(value == int(value) for value in observed):
        return away(place)
    step = 10.0 ** (floor(log10(abs(place))) + 1 - _DIGITS) if place else 1.0
    return away(place / step) * step
