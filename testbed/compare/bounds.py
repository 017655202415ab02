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
from math import ceil, floor, isclose, log10, sqrt
from statistics import fmean, stdev
from typing import Any

from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.statistics import t_quantile

LEAST_RUNS = 5
"""With four the quantile for one in 1000 is above 10."""
USUAL_CHANCE = 0.001
OF_THE_BOUND = "of the bound"
_DIGITS = 3
_SAME = 1e-9
"""A bound in round trips differs from run to run by what floats round."""
_UPPER, _LOWER = ("<", "<="), (">", ">=")


class Room(StrEnum):
    """What a bound leaves, gravest first. OPEN: some run does not tell whether it held, as of goodput that was not back
    before the end; what the others show is the better part. ALIKE and EXACT tell of no spread: the runs show one value,
    or one value is wanted."""

    TIGHT = "tight"
    OPEN = "open in some run"
    TOO_FEW = "too few runs"
    ALIKE = "all alike"
    EXACT = "exact"
    ENOUGH = "enough"


@dataclass(frozen=True)
class BoundRow:
    """An expectation in all runs that count, a number of `observed` for each. Where the bound differs from run to run,
    as `1.5 * clean.median`, all numbers are shares of it.

    `missed`: runs outside. `open`: runs in which it is not known. `decides`: it has a say in verdicts; warnings and the
    expectations of baselines have none. `deviations`: from the mean to the bound, in standard deviations of a further
    run. `needed`: the bound that a further run crosses with the chance asked for. Both None without a spread. `bound`:
    None where no run could tell it.
    """

    name: str
    op: str
    unit: str
    bound: float | None
    observed: tuple[float, ...]
    missed: int
    room: Room
    open: int = 0
    decides: bool = True
    deviations: float | None = None
    needed: float | None = None


@dataclass(frozen=True)
class BoundsOf:
    """The bounds of one scenario, in runs with the same settings. `left_out`: runs that are not believed. `copies`:
    runs of virtual time with a seed that another one has: the same run again."""

    label: str
    runs: int
    left_out: int
    bounds: tuple[BoundRow, ...]
    copies: int = 0


def bounds_of(label: str, verdicts: Iterable[Verdict], chance: float = USUAL_CHANCE) -> BoundsOf:
    """What repeats of one scenario say of its expectations. `chance`: that a right program crosses a bound in a run."""
    given = list(verdicts)
    believed = [verdict for verdict in given if verdict.fidelity.ok]
    checks: dict[str, list[CheckResult]] = {}
    decides = set()
    for verdict in believed:
        # An expectation that the run does not decide is open; a check of every run has no place.
        open_ = [check for check in verdict.checks if check.status is Status.INCONCLUSIVE and check.place]
        bounded = (check for check in verdict.checks if check.limit is not None or check in open_)
        # A line that a file has twice is one expectation.
        for name, check in {check.name: check for check in bounded}.items():
            checks.setdefault(name, []).append(check)
            if verdict.decides(check):
                decides.add(name)
    rows = (_row(name, found, name in decides, chance) for name, found in checks.items())
    return BoundsOf(label, len(believed), len(given) - len(believed), tuple(rows))


def gravest(found: Iterable[BoundsOf]) -> Room:
    """Of all bounds that decide; TOO_FEW if there is none, or a scenario has none."""
    given = list(found)
    rooms = {row.room for one in given for row in one.bounds if row.decides}
    rooms |= {Room.TOO_FEW for one in given if not one.bounds}
    return next((room for room in Room if room in rooms), Room.TOO_FEW)


def bounds_document(found: Iterable[BoundsOf], chance: float) -> dict[str, Any]:
    """As JSON types."""
    return {"chance": chance, "scenarios": [asdict(one) for one in found]}


def _row(name: str, checks: Sequence[CheckResult], decides: bool, chance: float) -> BoundRow:
    pairs = [
        (check.observed, check.limit) for check in checks if check.observed is not None and check.limit is not None
    ]
    missed, open_ = (sum(check.status is status for check in checks) for status in (Status.FAIL, Status.INCONCLUSIVE))
    if not pairs:
        return BoundRow(name, "", "", None, (), missed, Room.TIGHT if missed else Room.OPEN, open_, decides)
    told = next(check for check in checks if check.limit is not None)
    op, bound, unit = told.expected.partition(" ")[0], pairs[0][1], told.unit
    observed = tuple(seen for seen, _ in pairs)
    if not all(isclose(limit, bound, rel_tol=_SAME) for _, limit in pairs):
        observed = tuple(seen / limit for seen, limit in pairs if limit)
        bound, unit = 1.0, OF_THE_BOUND
    room, deviations, needed = _judged(op, bound, observed, missed, chance)
    if open_ and not missed:
        room = Room.OPEN
    return BoundRow(name, op, unit, bound, observed, missed, room, open_, decides, deviations, needed)


def _judged(
    op: str, bound: float, observed: Sequence[float], missed: int, chance: float
) -> tuple[Room, float | None, float | None]:
    if len(observed) < LEAST_RUNS:
        return Room.TIGHT if missed else Room.TOO_FEW, None, None
    if op not in (*_UPPER, *_LOWER):
        return Room.TIGHT if missed else Room.EXACT, None, None
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
