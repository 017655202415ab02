"""Answers in the student's own words: asked to be there, with headings and figures where they are named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.expression import Expression, ExpressionTerm
from mrc_testbed.testbed.lessons.kinds.kind import Judgement, plain_text
from mrc_testbed.testbed.lessons.kinds.numbers import AnswerTolerance, read_expression, read_tolerance
from mrc_testbed.testbed.lessons.reading import Keys

_HEADING = re.compile(r"^#+\s*(.+?)\s*#*\s*$", re.M)
_NUMBERS = re.compile(r"(?<![\w.])(-?(?:\d[\d,_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)(\s?%)?")


@dataclass(frozen=True, slots=True)
class FreeText:
    """A text of some words. `file`: it is a file of its own, else it is in answers.yaml. What it says is for a
    person to judge; that it is there, its headings and its figures are judged here."""

    word: ClassVar[str] = "text"
    words: int
    file: str
    headings: tuple[str, ...]
    figures: Mapping[str, Expression]
    tolerance: AnswerTolerance
    choices: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, keys: Keys) -> FreeText:
        """Key `text` with `words`, `file`, `headings`, `figures` and `within`."""
        below = keys.below("text", "{words: 8}")
        if below is None:
            return cls(1, "", (), {}, AnswerTolerance())
        figures = below.below("figures", '{slowdown: "{step_time.p100} / {step_time.median}"}')
        named = {name: figures.text(name, '"{step_time.p100}"') for name in figures.data} if figures else {}
        found = cls(
            below.whole("words", 1, 1),
            below.text("file", "report.md"),
            below.texts("headings", "[What differs]"),
            {name: read_expression(figures, name, text) for name, text in named.items()} if figures else {},
            read_tolerance(below, ""),
        )
        if found.file and not re.fullmatch(r"[a-z0-9][a-z0-9-]*\.md", found.file):
            below.complain("must be the name of a Markdown file in lower case, such as report.md", "file")
        below.refuse_others()
        return found

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Long enough, with its headings and figures. What is lacking is said."""
        text = given if isinstance(given, str) else plain_text(given)
        lacking = self._headings_lacking(text) + self._figures_lacking(text, evidence)
        if (words := written_words(text)) < self.words:
            lacking.insert(0, f"has {words} words of at least {self.words}")
        return Judgement(not lacking, "", "; ".join(lacking))

    def _headings_lacking(self, text: str) -> list[str]:
        there = {heading.casefold() for heading in _HEADING.findall(text)}
        return [f"lacks the heading {one!r}" for one in self.headings if one.casefold() not in there]

    def _figures_lacking(self, text: str, evidence: Evidence) -> list[str]:
        numbers = list(written_numbers(text))
        return [
            f"lacks the figure {name} of your run"
            for name, expression in self.figures.items()
            if not self._has(numbers, evidence.value(expression, None, ""))
        ]

    def _has(self, numbers: Sequence[float], truth: float) -> bool:
        return any(self.tolerance.accepts(number, truth) for number in numbers)

    def own(self, evidence: Evidence) -> Any:
        """No run writes it."""
        raise LookupError

    @property
    def form(self) -> str:
        """Its length."""
        return f"a text of at least {self.words} words{f', in {self.file}' if self.file else ''}"

    @property
    def terms(self) -> Sequence[ExpressionTerm]:
        """Of its figures."""
        return tuple(chain.from_iterable(expression.terms for expression in self.figures.values()))


def written_numbers(text: str) -> Iterator[float]:
    """All numbers of a text; `97 %` is both 97 and 0.97."""
    for number, percent in _NUMBERS.findall(text):
        found = float(number.replace(",", "").replace("_", ""))
        yield found
        if percent:
            yield found / 100


def written_words(text: str) -> int:
    """Words with a letter or digit in them; comments of Markdown, which the starter is full of, do not count."""
    return sum(any(map(str.isalnum, word)) for word in re.sub(r"<!--.*?-->", " ", text, flags=re.S).split())
