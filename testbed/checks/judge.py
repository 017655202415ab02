"""Run record -> verdict: the scenario's expectations, the checks that always hold, and the machine's fidelity."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from testbed.checks.builtin import builtin_checks
from testbed.checks.expect import Expectation, OfClean, Span, Window
from testbed.checks.fidelity import evaluate_fidelity
from testbed.checks.files import RecordError, read_json, write_json
from testbed.checks.guard import guarded
from testbed.checks.metrics import measure
from testbed.checks.record import RunRecord
from testbed.checks.result import CheckResult, Fidelity, Status, Verdict
from testbed.checks.scale import amount, number, scale_for, unit_factor
from testbed.checks.vocabulary import LINE, RTT

VERDICT_FILE = "verdict.json"

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}


def judge(record: RunRecord) -> Verdict:
    """Evaluate everything. Never raises because of what the record holds: what cannot be judged is inconclusive."""
    fidelity = evaluate_fidelity(record)
    checks = tuple(_believed(check, fidelity) for check in (*_expectations(record), *builtin_checks(record)))
    return Verdict(_merged(checks, fidelity), record.scenario.name, checks, fidelity)


def write_verdict(verdict: Verdict, folder: Path) -> None:
    """Write verdict.json."""
    write_json(folder / VERDICT_FILE, verdict.as_dict())


def read_verdict(folder: Path) -> Verdict:
    """Read verdict.json back. Raises RecordError when there is none or it is not one."""
    value = read_json(folder / VERDICT_FILE)
    try:
        return Verdict.from_dict(value or {})
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(folder / VERDICT_FILE, f"is not a verdict ({error!r})") from None


def check_expectation(record: RunRecord, wanted: Expectation, line: int | None = None) -> CheckResult:
    """Compare one expectation with the record. Raises NoData when there is nothing to compare."""
    observed = measure(record, wanted.metric.name, wanted.stat, wanted.window)
    limit = _limit(record, wanted)
    scale = scale_for(wanted, limit, record)
    held = _COMPARE[wanted.op](observed, limit)
    return CheckResult(
        wanted.text,
        Status.PASS if held else Status.FAIL,
        observed / scale.factor,
        f"{wanted.op} {number(limit / scale.factor)}",
        scale.unit,
        _why(wanted, observed, limit),
        _margin(wanted.op, observed, limit),
        line,
        wanted.metric.hard,
    )


def _expectations(record: RunRecord) -> Iterator[CheckResult]:
    for index, wanted in enumerate(record.scenario.expect):
        line = record.scenario.line_of("expect", index)
        yield guarded(wanted.text, line, partial(check_expectation, record, wanted, line))


def _limit(record: RunRecord, wanted: Expectation) -> float:
    bound = wanted.bound
    if isinstance(bound, OfClean):
        return bound.factor * measure(
            record, wanted.metric.name, bound.stat, Window(Span.CLEAN, flows=wanted.window.flows)
        )
    return bound.number * unit_factor(wanted.metric.dimension, bound.unit, record)


def _why(wanted: Expectation, observed: float, limit: float) -> str:
    if isinstance(wanted.bound, OfClean):
        base = limit / wanted.bound.factor if wanted.bound.factor else 0.0
        stat = f".{wanted.bound.stat}" if wanted.bound.stat else ""
        return f"clean{stat} is {amount(wanted.metric.dimension, base)}"
    if wanted.bound.unit in (RTT, LINE):
        return f"observed {amount(wanted.metric.dimension, observed)}"
    return ""


def _margin(op: str, observed: float, limit: float) -> float | None:
    if limit == 0 or op in ("==", "!="):
        return None
    room = limit - observed if op in ("<", "<=") else observed - limit
    return room / limit


def _believed(check: CheckResult, fidelity: Fidelity) -> CheckResult:
    """The check as it stands on this machine: without good time, neither pass nor fail can be believed."""
    if fidelity.ok or check.status is Status.INCONCLUSIVE or (check.hard and check.status is Status.FAIL):
        return check
    why = f"would be {check.status}, but {fidelity.reasons[0]}"
    return replace(check, status=Status.INCONCLUSIVE, why=why, unbelieved=check.status)


def _merged(checks: Iterable[CheckResult], fidelity: Fidelity) -> Status:
    """A fail that survived decides; then whatever could not be judged; only then a pass."""
    statuses = {check.status for check in checks}
    if Status.FAIL in statuses:
        return Status.FAIL
    if Status.INCONCLUSIVE in statuses or not statuses or not fidelity.ok:
        return Status.INCONCLUSIVE
    return Status.PASS
