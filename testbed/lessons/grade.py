"""Points of a lesson, part by part, and the verdict over all of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from testbed.errors import ExitCode


class LessonMark(StrEnum):
    """What a part, or a whole lesson, came to. INCONCLUSIVE: the run could not say; it costs no points."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class LessonPart:
    """One expectation or answer. `given`: what was written or observed; `truth`: what is right, for teachers."""

    name: str
    mark: LessonMark
    points: int
    given: str = ""
    why: str = ""
    truth: str = ""


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
        """Of the parts that could be judged."""
        return sum(part.points for part in self.parts if part.mark is not LessonMark.INCONCLUSIVE)

    @property
    def open(self) -> int:
        """Points of the others."""
        return sum(part.points for part in self.parts) - self.of

    @property
    def mark(self) -> LessonMark:
        """One wrong part fails; else one that could not be judged leaves it open."""
        return merged([part.mark for part in self.parts])

    @property
    def reason(self) -> str:
        """Why it is no pass, in one line; empty for a pass."""
        bad = [part for part in self.parts if part.mark is self.mark]
        if self.mark is LessonMark.PASS or not bad:
            return ""
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        return ": ".join(filter(None, (bad[0].name, bad[0].why))) + more

    @property
    def exit_code(self) -> ExitCode:
        """As that of a run with this verdict."""
        codes = {LessonMark.PASS: ExitCode.PASS, LessonMark.FAIL: ExitCode.FAIL}
        return codes.get(self.mark, ExitCode.INCONCLUSIVE)

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "lesson": self.lesson,
            "verdict": self.mark.value,
            "points": self.points,
            "of": self.of,
            "open": self.open,
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
    if LessonMark.FAIL in marks:
        return LessonMark.FAIL
    return LessonMark.PASS if marks and LessonMark.INCONCLUSIVE not in marks else LessonMark.INCONCLUSIVE
