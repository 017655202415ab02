"""Points of a lesson, part by part, and the verdict over all of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mrc_testbed.testbed.errors import ExitCode


class LessonMark(StrEnum):
    """What a part, or a whole lesson, came to. FAIL: it is wrong. UNANSWERED: there is no answer. WAITING: the answer
    is about a run that the student has not built yet. INCONCLUSIVE: the run could not say; it costs no points."""

    PASS = "pass"
    FAIL = "fail"
    UNANSWERED = "unanswered"
    WAITING = "waiting"
    INCONCLUSIVE = "inconclusive"


_GRAVEST = (LessonMark.FAIL, LessonMark.UNANSWERED, LessonMark.WAITING, LessonMark.INCONCLUSIVE)
"""The first of these that some part has is that of the whole."""


LEFT_OUT = {
    LessonMark.UNANSWERED: "not answered",
    LessonMark.WAITING: "not built yet",
    LessonMark.INCONCLUSIVE: "not judged",
}
"""What is said of the points of such parts."""


@dataclass(frozen=True, slots=True)
class LessonPart:
    """One expectation or answer. `given`: what was written or observed; `truth`: what is right, for teachers. `says`:
    what students are told in place of `name` and `why`, until the answers `until` are right that these give away."""

    name: str
    mark: LessonMark
    points: int
    given: str = ""
    why: str = ""
    truth: str = ""
    says: str = ""
    until: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        """As students may see it."""
        return self.says or self.name

    @property
    def shown_why(self) -> str:
        """As students may see it."""
        if not self.says or self.mark is LessonMark.PASS:
            return "" if self.says else self.why
        return f"its figure is told once {' and '.join(self.until)} {'are' if len(self.until) > 1 else 'is'} right"


@dataclass(frozen=True, slots=True)
class Grade:
    """A judged lesson. `notes`: what is said besides, and costs no points; `advice`: what would help an inconclusive
    run."""

    lesson: str
    parts: tuple[LessonPart, ...]
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        """Of the parts that are right."""
        return sum(part.points for part in self.parts if part.mark is LessonMark.PASS)

    @property
    def of(self) -> int:
        """Of all parts but those that no run could judge."""
        return sum(part.points for part in self.parts) - self.open

    @property
    def open(self) -> int:
        """Points of the parts that no run could judge."""
        return self.points_of(LessonMark.INCONCLUSIVE)

    def points_of(self, mark: LessonMark) -> int:
        """Points of the parts with this mark."""
        return sum(part.points for part in self.parts if part.mark is mark)

    @property
    def mark(self) -> LessonMark:
        """One wrong part fails; else one without an answer, one that waits, or one that no run could judge decides."""
        return merged([part.mark for part in self.parts])

    @property
    def reason(self) -> str:
        """Why it is no pass, in one line; empty for a pass."""
        bad = [part for part in self.parts if part.mark is self.mark]
        if self.mark is LessonMark.PASS or not bad:
            return ""
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        return ": ".join(filter(None, (bad[0].name, bad[0].why))) + more

    def left_out(self, noun: str = "") -> tuple[str, ...]:
        """In words, the points of parts that are neither right nor wrong: `6 not answered`."""
        counted = ((self.points_of(mark), said) for mark, said in LEFT_OUT.items())
        return tuple(" ".join(filter(None, (str(points), noun, said))) for points, said in counted if points)

    @property
    def exit_code(self) -> ExitCode:
        """As that of a run with this verdict. A lesson that is not finished has not passed."""
        codes = {LessonMark.PASS: ExitCode.PASS, LessonMark.INCONCLUSIVE: ExitCode.INCONCLUSIVE}
        return codes.get(self.mark, ExitCode.FAIL)

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "lesson": self.lesson,
            "verdict": self.mark.value,
            "points": self.points,
            "of": self.of,
            "open": self.open,
            "unanswered": self.points_of(LessonMark.UNANSWERED),
            "waiting": self.points_of(LessonMark.WAITING),
            "reason": self.reason,
            "notes": list(self.notes),
            "advice": list(self.advice),
            "parts": [
                {
                    "name": part.name,
                    "verdict": part.mark.value,
                    "points": part.points,
                    "given": part.given,
                    "why": part.why,
                    "truth": part.truth,
                }
                for part in self.parts
            ],
        }


def merged(marks: Sequence[LessonMark]) -> LessonMark:
    """Nothing at all is no pass."""
    usual = LessonMark.PASS if marks else LessonMark.INCONCLUSIVE
    return next((mark for mark in _GRAVEST if mark in marks), usual)
