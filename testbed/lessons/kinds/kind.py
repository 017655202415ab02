"""What every kind of answer is: read from check.yaml, and held against what a student wrote and ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.expression import ExpressionTerm


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an answer is right. `truth`: what is right, in words, for teachers and after the lesson. `why`: what is
    said to the student."""

    right: bool
    truth: str
    why: str = ""


class Unusable(Exception):
    """What the student wrote is no answer of this kind; says what one looks like."""


class AnswerKind(Protocol):
    """One question's kind of answer. `word` is the key that says that an answer is of this kind. Its class also has
    `read(keys)`, which makes it of its keys in check.yaml and notes mistakes there."""

    word: ClassVar[str]

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Raises Unusable; NotKnown and NotThere of the run."""

    def own(self, evidence: Evidence) -> Any:
        """The answer that the run itself gives. Raises NotKnown, NotThere; LookupError for a kind that a person
        answers."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What to choose from; none: it is written."""

    @property
    def form(self) -> str:
        """What an answer looks like, in a few words."""

    @property
    def terms(self) -> Sequence[ExpressionTerm]:
        """The figures and keys that it asks for, to be checked when the lesson is loaded."""


def plain_text(given: Any) -> str:
    """A written answer without the spaces around it. Raises Unusable."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise Unusable("is no text")
    return " ".join(str(given).split())


def plain_texts(given: Any) -> list[str]:
    """A list, or words with commas between them. Raises Unusable."""
    items = given if isinstance(given, list) else plain_text(given).split(",")
    return [plain_text(item) for item in items]
