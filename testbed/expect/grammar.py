"""The expectation language: `METRIC[.STAT] [of WHOM] OP BOUND [WINDOW]` -> `Expectation`. Pure.

step_time.p100 <= 1.5 x clean.median during faults
goodput of each host >= 97% of clean during reboot
recovery.p100 <= 6 rtt
fair_share.min of victims >= 0.95
packets_lost == 0 after reboot heals + 10 rtt
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mrc_testbed.testbed.expect.figure import STAT, Figure, known_stat, read_subject, read_window_of
from mrc_testbed.testbed.expect.scanner import Scanner, plain
from mrc_testbed.testbed.expect.vocabulary import EXAMPLES, OPERATORS, SAME_STATS, Metric, Severity
from mrc_testbed.testbed.expect.window import BEGINNINGS, FORMS, Span, Window


@dataclass(frozen=True, slots=True)
class Absolute:
    """An absolute bound: `number` of `unit` (a key of vocabulary.UNITS)."""

    number: float
    unit: str

    def __str__(self) -> str:
        return f"{plain(self.number)} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class OfClean:
    """A bound relative to the part of the run without faults: `factor` x the same metric's `stat` there."""

    factor: float
    stat: str | None

    def __str__(self) -> str:
        return f"{plain(self.factor)} x clean" + (f".{self.stat}" if self.stat else "")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure, an operator and a bound. `text` is the author's; `str` gives a canonical form. `bound_column`: where
    the bound begins in `text`. `cells`: variants or transports that it is for, empty: all; `elsewhere`: they are not
    the cell that it is in."""

    text: str
    figure: Figure
    op: str
    bound: Absolute | OfClean
    bound_column: int = field(compare=False)
    level: Severity = Severity.ERROR
    cells: tuple[str, ...] = ()
    elsewhere: bool = False

    def __str__(self) -> str:
        return f"{self.figure.subject} {self.op} {self.bound} {self.window}".rstrip()

    @property
    def metric(self) -> Metric:
        """The metric of the figure."""
        return self.figure.metric

    @property
    def stat(self) -> str | None:
        """The statistic of the figure, None where it has none."""
        return self.figure.stat

    @property
    def window(self) -> Window:
        """The window of the figure."""
        return self.figure.window

    @property
    def demand(self) -> str:
        """The part after the figure, in the author's words: `>= 70% of clean during cut`."""
        return f"{self.op} {self.text[self.bound_column :].rstrip()}"


def parse_expectation(text: str) -> Expectation:
    """Parse one expectation. Raises ExpectError with the column of the mistake, and nothing else."""
    text = re.sub(r"\s", " ", text)  # a block of YAML has line ends
    scan = Scanner(text)
    subject = read_subject(scan)
    op = _operator(scan)
    column = scan.column
    bound = _bound(scan, subject)
    figure = read_window_of(scan, subject)
    window, own = figure.window, SAME_STATS.get(figure.stat, figure.stat)
    if window.span is Span.CLEAN and isinstance(bound, OfClean) and SAME_STATS.get(bound.stat, bound.stat) == own:
        scan.fail("compares clean with itself; leave the last `clean` out or give a bound of its own", window.column)
    if scan.take(r"of\b(?=.)"):
        scan.fail(f"`of` comes right after the metric: {subject} of ... {op} {bound}", scan.column - len("of "))
    if scan.rest:
        scan.fail(f"{scan.rest!r} is unexpected; only a window can follow the bound: {FORMS}")
    return Expectation(text.rstrip(), figure, op, bound, bound_column=column)


def _operator(scan: Scanner) -> str:
    sign = scan.take(r"[<>=!]+")
    if sign is None and re.match(rf"({'|'.join(BEGINNINGS)})\b", scan.rest):
        scan.fail(
            f"the window comes last, after {' '.join(OPERATORS)} and the bound: `step_time.p100 <= 2s during cut`"
        )
    if sign is None:
        scan.fail(f"expected one of {' '.join(OPERATORS)}")
    if sign[0] not in OPERATORS:
        hint = "; write ==" if sign[0] == "=" else ""
        scan.fail(f"{sign[0]!r} is not one of {' '.join(OPERATORS)}{hint}", sign.start())
    return sign[0]


def _bound(scan: Scanner, figure: Figure) -> Absolute | OfClean:
    number = scan.take(r"\d{1,15}(\.\d{1,15})?")
    if number is None and scan.take(r"clean\b"):
        scan.fail("write how many times clean: `1 x clean`, `97% of clean`", scan.column - len("clean"))
    if number is None:
        scan.fail(f"expected a bound, such as {EXAMPLES[figure.metric.dimension]}")
    if scan.take(r"%"):
        if not scan.take(r"of\b"):
            scan.fail("expected `of clean` after %")
        return _of_clean(scan, figure, float(number[0]) / 100)
    if re.match(r"[*\u00d7]", scan.rest):
        scan.fail("write x for times, as in `1.5 x clean`")
    if scan.take(r"x\s*(?=clean\b)"):
        return _of_clean(scan, figure, float(number[0]))
    return _absolute(scan, figure.metric, float(number[0]))


def _of_clean(scan: Scanner, figure: Figure, factor: float) -> OfClean:
    clean = scan.take(r"clean\b")
    if clean is None:
        scan.fail("a relative bound compares with `clean`, the part of the run without faults")
    metric = figure.metric
    if not metric.has_clean:
        scan.fail(f"{metric.name} cannot be compared with clean; give a bound of its own", clean.start())
    word = scan.take(STAT)
    return OfClean(factor, figure.stat if word is None else known_stat(scan, metric, word[1], word.start(1)))


def _absolute(scan: Scanner, metric: Metric, number: float) -> Absolute:
    column = scan.column
    word = scan.take(rf"(?!({'|'.join(BEGINNINGS)})\b)[A-Za-z]+(/[A-Za-z]+)?")
    unit = word[0] if word else ""
    if error := metric.unit_error(unit):
        scan.fail(error, column)
    return Absolute(number, unit)
