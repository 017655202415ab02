"""The expectation language: `METRIC[.STAT] [of FLOWS] OP BOUND [WINDOW]` -> `Expectation`. Pure.

step_time.p100 <= 1.5 x clean.median during faults
goodput >= 97% of clean during reboot
recovery.p100 <= 6 rtt
fair_share.min of victims >= 0.95
goodput >= 0.7 line from 4s to 6s
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum

from testbed.checks.vocabulary import EXAMPLES, METRICS, UNITS, Dimension, Metric, Windows

OPERATORS = ("<=", ">=", "==", "!=", "<", ">")
CLEAN = "clean"
FAULTS = "faults"
RESERVED = (CLEAN, FAULTS)
"""Window words that no fault may be named."""
_WINDOWS = "`during NAME`, `during faults`, `clean` or `from 4s to 6s`"


class ExpectError(ValueError):
    """An expectation that cannot be read. `column` counts from 0 inside the text."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


class Span(Enum):
    """Which part of the measured run an expectation looks at."""

    RUN = "run"
    CLEAN = "clean"
    FAULTS = "faults"
    FAULT = "fault"
    TIMES = "times"


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the run; `fault` names the fault of a `Span.FAULT`, `column` where it stands in the text.

    `begin_ns` and `end_ns` of a `Span.TIMES` count from the start of the workload. `flows` names one flow (`h0->h4`)
    or a group of them, and is empty for all.
    """

    span: Span = Span.RUN
    fault: str = ""
    column: int = 0
    flows: str = ""
    flows_column: int = 0
    begin_ns: float = 0
    end_ns: float = 0

    def __str__(self) -> str:
        if self.span is Span.RUN:
            return ""
        if self.span is Span.TIMES:
            return f"from {self.begin_ns / 1e9:g} s to {self.end_ns / 1e9:g} s"
        return CLEAN if self.span is Span.CLEAN else f"during {self.fault or FAULTS}"


@dataclass(frozen=True, slots=True)
class Absolute:
    """A bound of its own: `number` of `unit` (a key of vocabulary.UNITS)."""

    number: float
    unit: str


@dataclass(frozen=True, slots=True)
class OfClean:
    """A bound relative to the part of the run that no fault touched: `factor` x the same metric's `stat` there."""

    factor: float
    stat: str | None


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of `expect:`, taken apart. `text` is how its author wrote it."""

    text: str
    metric: Metric
    stat: str | None
    op: str
    bound: Absolute | OfClean
    window: Window


def parse_expectation(text: str) -> Expectation:
    """Read one expectation. Raises ExpectError with the column of the mistake, never anything else."""
    scan = _Scanner(text)
    metric = _metric(scan)
    stat = _stat(scan, metric)
    flows, flows_column = _flows(scan, metric)
    op = _operator(scan)
    bound = _bound(scan, metric, stat)
    window = replace(_window(scan, metric), flows=flows, flows_column=flows_column)
    if window.span is Span.CLEAN and isinstance(bound, OfClean) and bound.stat in (None, stat):
        scan.fail("compares clean with itself; leave the last `clean` out or give a bound of its own", window.column)
    if scan.rest():
        scan.fail(f"{scan.rest()!r} is left over; after the bound only a window fits: {_WINDOWS}")
    return Expectation(text, metric, stat, op, bound, window)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest of the known words, or nothing."""
    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Scanner:
    """A position in a text; spaces between words mean nothing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def rest(self) -> str:
        self._skip()
        return self.text[self.at :]

    def take(self, pattern: str) -> re.Match[str] | None:
        self._skip()
        match = re.compile(pattern).match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def fail(self, message: str, column: int | None = None) -> None:
        self._skip()
        raise ExpectError(self.at if column is None else column, message)

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1


def _metric(scan: _Scanner) -> Metric:
    word = scan.take(r"[A-Za-z_][A-Za-z0-9_-]*")
    if word is None:
        raise ExpectError(scan.at, "must begin with a metric, as in `qp_errors == 0`")
    metric = METRICS.get(word[0])
    if metric is None:
        hint = did_you_mean(word[0], METRICS) or f"; metrics: {', '.join(METRICS)}"
        raise ExpectError(word.start(), f"unknown metric {word[0]!r}{hint}")
    return metric


def _stat(scan: _Scanner, metric: Metric) -> str | None:
    word = scan.take(r"\.\s*([A-Za-z0-9_]*)")
    if word is None:
        if metric.stats:
            scan.fail(f"{metric.name} needs a statistic, such as {metric.name}.p100 (one of {' '.join(metric.stats)})")
        return None
    return _known_stat(metric, word[1], word.start(1))


def _known_stat(metric: Metric, stat: str, column: int) -> str:
    if not metric.stats:
        raise ExpectError(column, f"{metric.name} is one number and has no statistic {stat!r}")
    if stat not in metric.stats:
        hint = did_you_mean(stat, metric.stats) or f"; one of {' '.join(metric.stats)}"
        raise ExpectError(column, f"unknown statistic {stat!r} of {metric.name}{hint}")
    return stat


def _flows(scan: _Scanner, metric: Metric) -> tuple[str, int]:
    word = scan.take(r"of\b")
    if word is None:
        return "", 0
    if not metric.by_flow:
        raise ExpectError(word.start(), f"{metric.name} is not counted by flow; leave `of` out")
    name = scan.take(r"([A-Za-z0-9_][A-Za-z0-9_-]*?)(\s*->\s*([A-Za-z0-9_]+)|(?![\w-]))")
    if name is None:
        raise ExpectError(scan.at, "expected a flow, such as h0->h4, or the name of some, after `of`")
    return (f"{name[1]}->{name[3]}" if name[3] else name[1]), name.start()


def _operator(scan: _Scanner) -> str:
    sign = scan.take(r"[<>=!]+")
    if sign is None:
        raise ExpectError(scan.at, f"expected one of {' '.join(OPERATORS)}")
    if sign[0] not in OPERATORS:
        hint = "; write ==" if sign[0] == "=" else ""
        raise ExpectError(sign.start(), f"{sign[0]!r} is not one of {' '.join(OPERATORS)}{hint}")
    return sign[0]


def _bound(scan: _Scanner, metric: Metric, stat: str | None) -> Absolute | OfClean:
    number = scan.take(r"\d{1,15}(\.\d{1,15})?")
    if number is None:
        raise ExpectError(scan.at, f"expected a bound, such as {EXAMPLES[metric.dimension]}")
    if scan.take(r"%"):
        if not scan.take(r"of\b"):
            scan.fail("expected `of clean` after %")
        return _of_clean(scan, metric, stat, float(number[0]) / 100)
    if scan.take(r"x\s*(?=clean\b)"):
        return _of_clean(scan, metric, stat, float(number[0]))
    return _absolute(scan, metric, float(number[0]))


def _of_clean(scan: _Scanner, metric: Metric, stat: str | None, factor: float) -> OfClean:
    clean = scan.take(r"clean\b")
    if clean is None:
        raise ExpectError(scan.at, "a relative bound compares with `clean`, the part of the run without faults")
    if not metric.has_clean:
        raise ExpectError(clean.start(), f"{metric.name} cannot be compared with clean; give a bound of its own")
    word = scan.take(r"\.\s*([A-Za-z0-9_]*)")
    return OfClean(factor, stat if word is None else _known_stat(metric, word[1], word.start(1)))


def _absolute(scan: _Scanner, metric: Metric, number: float) -> Absolute:
    units = UNITS[metric.dimension]
    column = scan.at
    word = scan.take(r"(?!during\b|clean\b|from\b)[A-Za-z]+(/[A-Za-z]+)?")
    unit = word[0] if word else ""
    if unit in units:
        return Absolute(number, unit)
    choice = " ".join(known for known in units if known)
    wants = f"{metric.name} is {metric.dimension.value}"
    if metric.dimension is Dimension.COUNT:
        raise ExpectError(word.start() if word else column, f"{wants}, without a unit; got {unit!r}")
    if not unit:
        raise ExpectError(column, f"{wants}: give the bound a unit, such as {EXAMPLES[metric.dimension]}")
    raise ExpectError(word.start() if word else column, f"{wants}: unknown unit {unit!r}; use one of {choice}")


def _window(scan: _Scanner, metric: Metric) -> Window:
    start = len(scan.text) - len(scan.rest())
    if scan.take(r"clean(?![\w-])"):
        window = Window(Span.CLEAN, column=start)
    elif scan.take(r"during\b"):
        name = scan.take(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
        if name is None:
            raise ExpectError(scan.at, "expected the name of a fault, or `faults`, after `during`")
        every = name[0] == FAULTS
        window = Window(Span.FAULTS if every else Span.FAULT, "" if every else name[0], name.start())
    elif scan.take(r"from\b"):
        window = _times(scan, start)
    else:
        return Window()
    during = window.span in (Span.FAULT, Span.FAULTS)
    if metric.windows is Windows.RUN or (metric.windows is Windows.FAULTS and not during):
        raise ExpectError(start, f"{metric.name} is known for {metric.windows.value}; leave {str(window)!r} out")
    return window


def _times(scan: _Scanner, column: int) -> Window:
    begin_ns = _time(scan)
    if not scan.take(r"to\b"):
        scan.fail("expected `to` and a time, as in `from 4s to 6s`")
    end_ns = _time(scan)
    if end_ns <= begin_ns:
        scan.fail("a window must end after it begins", column)
    return Window(Span.TIMES, column=column, begin_ns=begin_ns, end_ns=end_ns)


def _time(scan: _Scanner) -> float:
    """A time after the start of the workload; the base RTT is no unit of it, as it is not known beforehand."""
    word = scan.take(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-z]+)")
    factor = UNITS[Dimension.TIME].get(word[2], 0) if word else 0
    if word is None or not factor:
        column = scan.at if word is None else word.start()
        raise ExpectError(column, "expected a time since the workload began, such as 4s, after `from` and `to`")
    return float(word[1]) * factor
