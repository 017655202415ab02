"""The expectation language: `METRIC[.STAT] [of WHOM] OP BOUND [WINDOW]` -> `Expectation`. Pure.

step_time.p100 <= 1.5 x clean.median during faults
goodput of each host >= 97% of clean during reboot
recovery.p100 <= 6 rtt
fair_share.min of victims >= 0.95
packets_lost == 0 after reboot heals + 10 rtt
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from testbed.expect.metrics import METRICS
from testbed.expect.scanner import Scanner, plain
from testbed.expect.scope import read_scope
from testbed.expect.spelling import did_you_mean
from testbed.expect.vocabulary import EXAMPLES, OPERATORS, UNITS, Dimension, Level, Metric
from testbed.expect.window import BEGINNINGS, FORMS, Span, Window, read_window


@dataclass(frozen=True, slots=True)
class Absolute:
    """A bound of its own: `number` of `unit` (a key of vocabulary.UNITS)."""

    number: float
    unit: str

    def __str__(self) -> str:
        return f"{plain(self.number)} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class OfClean:
    """A bound relative to the part of the run that no fault touched: `factor` x the same metric's `stat` there."""

    factor: float
    stat: str | None

    def __str__(self) -> str:
        return f"{plain(self.factor)} x clean" + (f".{self.stat}" if self.stat else "")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of `expect:`, taken apart. `text` is how its author wrote it; `str` says the same in one fixed way."""

    text: str
    metric: Metric
    stat: str | None
    op: str
    bound: Absolute | OfClean
    window: Window
    level: Level = Level.ERROR

    def __str__(self) -> str:
        figure = self.metric.name + (f".{self.stat}" if self.stat else "")
        parts = (figure, str(self.window.scope), self.op, str(self.bound), str(self.window))
        return " ".join(part for part in parts if part)


def parse_expectation(text: str) -> Expectation:
    """Read one expectation. Raises ExpectError with the column of the mistake, never anything else."""
    scan = Scanner(text)
    metric = _metric(scan)
    stat = _stat(scan, metric)
    scope = read_scope(scan, metric)
    op = _operator(scan)
    bound = _bound(scan, metric, stat)
    window = replace(read_window(scan, metric), scope=scope)
    if window.span is Span.CLEAN and isinstance(bound, OfClean) and bound.stat in (None, stat):
        scan.fail("compares clean with itself; leave the last `clean` out or give a bound of its own", window.column)
    if scan.rest:
        scan.fail(f"{scan.rest!r} is left over; after the bound only a window fits: {FORMS}")
    return Expectation(text, metric, stat, op, bound, window)


def _metric(scan: Scanner) -> Metric:
    word = scan.take(r"[A-Za-z_][A-Za-z0-9_-]*")
    if word is None:
        scan.fail("must begin with a metric, as in `qp_errors == 0`")
    metric = METRICS.get(word[0])
    if metric is None:
        hint = did_you_mean(word[0], METRICS) or f"; metrics: {', '.join(METRICS)}"
        scan.fail(f"unknown metric {word[0]!r}{hint}", word.start())
    return metric


def _stat(scan: Scanner, metric: Metric) -> str | None:
    word = scan.take(r"\.\s*([A-Za-z0-9_]*)")
    if word is None:
        if metric.stats:
            scan.fail(f"{metric.name} needs a statistic, such as {metric.example} (one of {' '.join(metric.stats)})")
        return None
    return _known_stat(scan, metric, word[1], word.start(1))


def _known_stat(scan: Scanner, metric: Metric, stat: str, column: int) -> str:
    if not metric.stats:
        scan.fail(f"{metric.name} is one number and has no statistic {stat!r}", column)
    if stat not in metric.stats:
        hint = did_you_mean(stat, metric.stats) or f"; one of {' '.join(metric.stats)}"
        scan.fail(f"unknown statistic {stat!r} of {metric.name}{hint}", column)
    return stat


def _operator(scan: Scanner) -> str:
    sign = scan.take(r"[<>=!]+")
    if sign is None:
        scan.fail(f"expected one of {' '.join(OPERATORS)}")
    if sign[0] not in OPERATORS:
        hint = "; write ==" if sign[0] == "=" else ""
        scan.fail(f"{sign[0]!r} is not one of {' '.join(OPERATORS)}{hint}", sign.start())
    return sign[0]


def _bound(scan: Scanner, metric: Metric, stat: str | None) -> Absolute | OfClean:
    number = scan.take(r"\d{1,15}(\.\d{1,15})?")
    if number is None:
        scan.fail(f"expected a bound, such as {EXAMPLES[metric.dimension]}")
    if scan.take(r"%"):
        if not scan.take(r"of\b"):
            scan.fail("expected `of clean` after %")
        return _of_clean(scan, metric, stat, float(number[0]) / 100)
    if scan.take(r"x\s*(?=clean\b)"):
        return _of_clean(scan, metric, stat, float(number[0]))
    return _absolute(scan, metric, float(number[0]))


def _of_clean(scan: Scanner, metric: Metric, stat: str | None, factor: float) -> OfClean:
    clean = scan.take(r"clean\b")
    if clean is None:
        scan.fail("a relative bound compares with `clean`, the part of the run without faults")
    if not metric.has_clean:
        scan.fail(f"{metric.name} cannot be compared with clean; give a bound of its own", clean.start())
    word = scan.take(r"\.\s*([A-Za-z0-9_]*)")
    return OfClean(factor, stat if word is None else _known_stat(scan, metric, word[1], word.start(1)))


def _absolute(scan: Scanner, metric: Metric, number: float) -> Absolute:
    units = UNITS[metric.dimension]
    column = scan.column
    word = scan.take(rf"(?!({'|'.join(BEGINNINGS)})\b)[A-Za-z]+(/[A-Za-z]+)?")
    unit = word[0] if word else ""
    if unit in units:
        return Absolute(number, unit)
    choice = " ".join(known for known in units if known)
    wants = f"{metric.name} is {metric.dimension.value}"
    if metric.dimension is Dimension.COUNT:
        scan.fail(f"{wants}, without a unit; got {unit!r}", column)
    if not unit:
        scan.fail(f"{wants}: give the bound a unit, such as {EXAMPLES[metric.dimension]}", column)
    scan.fail(f"{wants}: unknown unit {unit!r}; use one of {choice}", column)
