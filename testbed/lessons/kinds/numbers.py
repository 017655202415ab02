"""Answers that are numbers: compared with an expression over the student's own run, or with fixed bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mrc_testbed.testbed.expect.vocabulary import UNITS
from mrc_testbed.testbed.lessons.evidence import RUN, Evidence
from mrc_testbed.testbed.lessons.expression import (
    Expression,
    ExpressionError,
    ExpressionTerm,
    TermKind,
    parse_expression,
)
from mrc_testbed.testbed.lessons.kinds.kind import Judgement, Unusable, plain_text
from mrc_testbed.testbed.lessons.reading import Keys

_NUMBER = re.compile(r"([+-]?[\d_,]*\.?\d+(?:[eE][+-]?\d+)?)\s*(\S*)")
_EXACT = 1e-9
"""Share by which floating-point arithmetic may be off."""
NOTHING = parse_expression("0")


@dataclass(frozen=True, slots=True)
class AnswerTolerance:
    """How far an answer may be off: a share of the truth, or an amount in the unit of the answer."""

    amount: float = _EXACT
    relative: bool = True

    def around(self, truth: float) -> float:
        """The greatest difference, in the unit of the answer."""
        return max(self.amount * abs(truth) if self.relative else self.amount, _EXACT * abs(truth))

    def accepts(self, given: float, truth: float) -> bool:
        """Whether it is near enough; the limit itself is."""
        # A difference of decimals such as 1.1 - 1.0 is a hair more than the 0.1 that is meant.
        return abs(given - truth) <= self.around(truth) * (1 + _EXACT)

    def __str__(self) -> str:
        if self.relative and self.amount == _EXACT:
            return "exactly"
        return f"within {self.amount * 100:g} %" if self.relative else f"within {self.amount:g}"


def read_tolerance(keys: Keys, unit: str) -> AnswerTolerance:
    """The key `within`: `5%`, `0.5`, or `0.5 rtt` in the unit of the answer."""
    text = keys.text("within", "5%")
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(\S*)", text)
    if not text:
        return AnswerTolerance()
    if found is None or found[2] not in ("", "%", unit):
        keys.complain("must be a percentage such as 5%, or an amount in the unit of the answer such as 0.5", "within")
        return AnswerTolerance()
    return AnswerTolerance(float(found[1]) / 100, True) if found[2] == "%" else AnswerTolerance(float(found[1]), False)


def read_number(given: Any, unit: str = "") -> float:
    """A number as a student writes it: `3.2`, `3.2 rtt`, `87.5%` for 0.875, `131,072`. Raises Unusable."""
    text = plain_text(given)
    found = _NUMBER.fullmatch(text)
    example = f"3.5 {unit}".rstrip()
    if found is None:
        raise Unusable(f"{text!r} is not a number, such as {example}")
    number, word = float(found[1].replace(",", "").replace("_", "")), found[2]
    if word == "%" and not unit:
        return number / 100
    if word not in ("", unit):
        raise Unusable(f"{text!r} is not {f'in {unit}' if unit else 'a plain number'}; write for example {example}")
    if not math.isfinite(number):
        raise Unusable(f"{text!r} is too large")
    return number


@dataclass(frozen=True, slots=True)
class Value:
    """A number that the run, the scenario or the planner gives."""

    word: ClassVar[str] = "value"
    expression: Expression
    unit: str
    tolerance: AnswerTolerance
    plan: str

    @classmethod
    def read(cls, keys: Keys) -> Value:
        """Keys `value`, `unit`, `within`, `plan`."""
        text, unit = keys.text("value", '"{recovery.p100}"', needed=True), keys.text("unit", "rtt")
        known = {name for units in UNITS.values() for name in units}
        if unit and unit not in known:
            keys.complain(f"unknown unit; one of {' '.join(filter(None, known))}", "unit")
        expression = read_expression(keys, "value", text)
        figures = [term for term in expression.terms if term.kind is TermKind.FIGURE]
        if unit and len(figures) != 1:
            keys.complain("is for a single figure; leave it out", "unit")
        plan = keys.text("plan", '"--gpus 131072 --planes 8"')
        if bool(plan) != any(term.kind is TermKind.PLAN for term in expression.terms):
            keys.complain("`plan` and {plan ...} in `value` go together", "value")
        return cls(expression, unit, read_tolerance(keys, unit), plan)

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Near enough to the run's own number?"""
        number, truth = read_number(given, self.unit), self.own(evidence)
        return Judgement(self.tolerance.accepts(number, truth), self._words(truth), self._off(number, truth))

    def _words(self, truth: float) -> str:
        return f"{truth:.6g} {self.unit}".rstrip()

    def _off(self, number: float, truth: float) -> str:
        if self.tolerance.accepts(number, truth):
            return ""
        of_run = any(term.kind is not TermKind.PLAN for term in self.expression.terms) or RUN in self.plan.split()
        where = "your run has" if of_run else "it should be"
        side = "less" if truth < number else "more"
        return f"{where} {side}; it counts {self.tolerance}"

    def own(self, evidence: Evidence) -> float:
        """The number of the run."""
        return evidence.value(self.expression, self.unit or None, self.plan)

    choices: ClassVar[tuple[str, ...]] = ()

    @property
    def form(self) -> str:
        """A number and its unit."""
        return f"a number{f' in {self.unit}' if self.unit else ''}, {self.tolerance}"

    @property
    def terms(self) -> Sequence[ExpressionTerm]:
        """Of its expression."""
        return self.expression.terms


def read_expression(keys: Keys, key: str, text: str) -> Expression:
    """The expression at a key; a mistake is noted."""
    try:
        return parse_expression(text) if text else NOTHING
    except ExpressionError as error:
        keys.complain(str(error), key)
        return NOTHING


@dataclass(frozen=True, slots=True)
class InRange:
    """Any number in a fixed range."""

    word: ClassVar[str] = "between"
    low: float
    high: float
    unit: str
    choices: ClassVar[tuple[str, ...]] = ()
    terms: ClassVar[tuple[ExpressionTerm, ...]] = ()

    @classmethod
    def read(cls, keys: Keys) -> InRange:
        """Keys `between` and `unit`."""
        ends = keys.items("between")
        numbers = [float(end) for end in ends if isinstance(end, int | float) and not isinstance(end, bool)]
        if len(numbers) != 2 or len(ends) != 2 or numbers[0] > numbers[1]:
            keys.complain("must be two numbers, the smaller first, such as [2, 5]", "between")
            numbers = [0, 0]
        return cls(numbers[0], numbers[1], keys.text("unit", "rtt"))

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Inside the range, ends included."""
        number = read_number(given, self.unit)
        right = self.low <= number <= self.high
        return Judgement(right, f"{self.low:g} to {self.high:g} {self.unit}".rstrip(), "" if right else "it is not")

    def own(self, evidence: Evidence) -> Any:
        """No run answers it."""
        raise LookupError

    @property
    def form(self) -> str:
        """A number and its unit."""
        return f"a number{f' in {self.unit}' if self.unit else ''}"
