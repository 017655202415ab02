"""Answers chosen from a list: one of it, or some of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.expression import ExpressionTerm
from mrc_testbed.testbed.lessons.kinds.kind import Judgement, Unusable, plain_text, plain_texts
from mrc_testbed.testbed.lessons.reading import Keys


@dataclass(frozen=True, slots=True)
class _Choice:
    choices: tuple[str, ...]
    right: tuple[str, ...]
    terms: ClassVar[tuple[ExpressionTerm, ...]] = ()

    def own(self, evidence: Evidence) -> Any:
        """No run answers it."""
        raise LookupError

    def _known(self, given: str) -> str:
        """The choice as it is written in the lesson. Raises Unusable."""
        found = next((one for one in self.choices if one.casefold() == given.casefold()), None)
        if found is None:
            hint = did_you_mean(given, self.choices) or f"; there are {', '.join(self.choices)}"
            raise Unusable(f"{given!r} is none of the choices{hint}")
        return found


def _read(keys: Keys, key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    choices, right = keys.texts(key, "[yes, no]"), keys.texts("right", "yes")
    if len(set(choices)) < 2:
        keys.complain("needs two choices at least", key)
    if not right:
        keys.complain("lacks `right`: which of them is right")
    for one in right:
        if one not in choices:
            keys.complain(f"{one!r} is none of the choices{did_you_mean(one, choices)}", "right")
    return choices, right


@dataclass(frozen=True, slots=True)
class OneOf(_Choice):
    """One of a list; several may be right."""

    word: ClassVar[str] = "one_of"

    @classmethod
    def read(cls, keys: Keys) -> OneOf:
        """Keys `one_of` and `right`."""
        return cls(*_read(keys, "one_of"))

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """One of those that are right, whatever its case."""
        return Judgement(self._known(plain_text(given)) in self.right, " or ".join(self.right))

    @property
    def form(self) -> str:
        """The choices."""
        return f"one of {', '.join(self.choices)}"


@dataclass(frozen=True, slots=True)
class SomeOf(_Choice):
    """Some of a list: exactly those that are right."""

    word: ClassVar[str] = "some_of"

    @classmethod
    def read(cls, keys: Keys) -> SomeOf:
        """Keys `some_of` and `right`."""
        return cls(*_read(keys, "some_of"))

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """All that are right and no other, in any order."""
        chosen = {self._known(one) for one in plain_texts(given)}
        return Judgement(chosen == set(self.right), ", ".join(self.right))

    @property
    def form(self) -> str:
        """The choices."""
        return f"a list of some of {', '.join(self.choices)}"
