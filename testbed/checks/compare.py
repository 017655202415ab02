"""Compares one expectation with the record; for each host or flow the worst member counts. Pure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, isnan

from mrc_testbed.testbed.checks.figure import of_each
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.scale import amount, number, scale_for, unit_factor
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.unmet import require_met
from mrc_testbed.testbed.checks.windows import DURING, KnownBetween, NoData, NotApplicable
from mrc_testbed.testbed.expect import Expectation, Figure, OfClean, Scope, Span, Window
from mrc_testbed.testbed.expect.metrics import PROGRAM
from mrc_testbed.testbed.expect.vocabulary import LINE, RTT, UNITS
from mrc_testbed.testbed.rundir.lines import Party

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_ROOM: Mapping[str, Callable[[float, float], float]] = {
    **dict.fromkeys(("<", "<="), lambda observed, limit: limit - observed),
    **dict.fromkeys((">", ">="), lambda observed, limit: observed - limit),
    "==": lambda observed, limit: -abs(observed - limit),
    "!=": lambda observed, limit: abs(observed - limit),
}
"""Distance from failing, negative for a fail."""
_OF_PROGRAMS = ("programs_failed", "program_time", PROGRAM)
"""How metrics of the user's programs begin."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The figure of one member (or of all) and its bound, in base units."""

    scope: Scope
    observed: float
    limit: float


def holds(wanted: Expectation, value: float) -> bool:
    """Whether a value in base units is inside the bound; False for a bound relative to clean, to the RTT or to line."""
    if isinstance(wanted.bound, OfClean) or wanted.bound.unit in (RTT, LINE):
        return False
    unit = UNITS[wanted.metric.dimension].get(wanted.bound.unit, 1)
    return _COMPARE[wanted.op](value, wanted.bound.number * unit)


def check_expectation(record: RunRecord, wanted: Expectation, line: int | None = None) -> CheckResult:
    """Compare one expectation with the record. Raises NoData if there is nothing to compare, NotApplicable for a line
    of other cells."""
    if wanted.elsewhere:
        raise NotApplicable(f"for {', '.join(wanted.cells)} only")
    result = _compared(record, wanted, line)
    if result.status is Status.FAIL and not result.hard and wanted.figure.window.span in DURING:
        require_met(record, wanted.figure.window.fault)  # a fault that met no packet fails nothing
    return result


def _compared(record: RunRecord, wanted: Expectation, line: int | None) -> CheckResult:
    if not wanted.figure.scope.each:
        return _result(record, wanted, _find(record, wanted, wanted.figure), line)
    worst = _worst(record, wanted)
    result = _result(record, wanted, worst, line)
    return replace(
        result, worst=worst.scope.name, why="; ".join(filter(None, (f"worst: {worst.scope.name}", result.why)))
    )


def _find(record: RunRecord, wanted: Expectation, figure: Figure) -> Finding:
    limit = _limit(record, wanted, figure)
    try:
        return Finding(figure.scope, measure(record, figure), limit)
    except KnownBetween as found:
        least, most = (statistic(values, figure.stat or "p100") for values in (found.least, found.most))
        if _decided(wanted.op, least, most, limit):
            return Finding(figure.scope, least, limit)
        raise


def _decided(op: str, least: float, most: float, limit: float) -> bool:
    """Whether all values from `least` to `most` meet the bound, or none does."""
    if op in ("==", "!="):
        return not least <= limit <= most or least == most
    return _COMPARE[op](least, limit) is _COMPARE[op](most, limit)


def _limit(record: RunRecord, wanted: Expectation, figure: Figure) -> float:
    bound = wanted.bound
    if isinstance(bound, OfClean):
        clean = Figure(figure.metric, bound.stat, Window(Span.CLEAN, scope=figure.scope))
        usual = measure(record, clean)
        if not usual and wanted.op in (">", ">="):
            raise NoData("clean is 0: nothing to compare with")
        return bound.factor * usual
    return bound.number * unit_factor(figure.metric.dimension, bound.unit, record)


def _worst(record: RunRecord, wanted: Expectation) -> Finding:
    """The member that fails, or is nearest to failing.

    A member with missing data leaves the check open unless another one fails; a member without such a figure does not
    count. Raises NoData.
    """
    found = of_each(record, wanted.figure, lambda figure: _find(record, wanted, figure))
    failed = [one for one in found.values if not _COMPARE[wanted.op](one.observed, one.limit)]
    if not failed and (found.lacking or not found.values):
        raise NoData(found.reason)
    return min(failed or found.values, key=lambda one: _room(wanted.op, one))


def _room(op: str, one: Finding) -> float:
    """Relative to the bound, because members may have different bounds."""
    room = _ROOM[op](one.observed, one.limit)
    return room / one.limit if one.limit else room


def _result(record: RunRecord, wanted: Expectation, found: Finding, line: int | None) -> CheckResult:
    scale = scale_for(wanted, found.limit, record)
    held = _COMPARE[wanted.op](found.observed, found.limit) and not isnan(found.observed)
    known = isfinite(found.observed)  # programs print nan and inf, which no JSON has
    too_much = not held and found.observed >= found.limit  # what a slow machine cannot make worse, it can make less
    return CheckResult(
        wanted.text,
        Status.PASS if held else Status.FAIL,
        found.observed / scale.factor if known else None,
        f"{wanted.op} {number(found.limit / scale.factor)}",
        scale.unit,
        _why(wanted, found, scale.factor),
        None if found.limit == 0 or wanted.op in ("==", "!=") or not known else _room(wanted.op, found),
        line,
        wanted.metric.hard and too_much,
        limit=found.limit / scale.factor,
        observed_as=(wanted.metric.zero if found.observed == 0 else "") if known else str(found.observed),
        who=Party.PROGRAM if wanted.metric.name.startswith(_OF_PROGRAMS) else Party.NETWORK,
    )


def _why(wanted: Expectation, found: Finding, one: float) -> str:
    """The size of a bound that is no fixed one; `one`: that of its unit, in base units."""
    if isinstance(wanted.bound, OfClean):
        base = found.limit / wanted.bound.factor if wanted.bound.factor else 0.0
        stat = f".{wanted.bound.stat}" if wanted.bound.stat else ""
        return f"clean{stat} is {amount(wanted.metric.dimension, base)}"
    if wanted.bound.unit in (RTT, LINE):
        return f"1 {wanted.bound.unit} is {amount(wanted.metric.dimension, one)}"
    return ""
