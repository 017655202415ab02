"""Lessons and grades as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.lessons.grade import Grade, LessonMark, LessonPart
from testbed.lessons.judging import NO_ANSWER
from testbed.lessons.lesson import Lesson

SIGNS = {LessonMark.PASS: "✔", LessonMark.FAIL: "✖", LessonMark.INCONCLUSIVE: "?"}


def list_lines(lessons: Sequence[Lesson]) -> Iterator[str]:
    """A line for each: number, title, time, points, worlds, goal."""
    width = max((len(one.title) for one in lessons), default=0)
    for one in lessons:
        worlds = "" if len(one.worlds) > 1 else f"  ({one.worlds[0].value} only)"
        number = one.number or one.name
        yield f"{number:>3}  {one.title:<{width}}  {one.time:>7}  {one.points:>2} points  {one.goal}{worlds}"


def grade_lines(grade: Grade, truths: bool = False) -> Iterator[str]:
    """Each part, then the verdict. `truths`: what would be right, too."""
    told = {NO_ANSWER: NO_ANSWER}
    for part in grade.parts:
        why = told.setdefault(part.why, part.why)
        told[part.why] = "as above" if part.why and part.why != NO_ANSWER else part.why
        yield f"{SIGNS[part.mark]} {_said(part, why)}"
        if truths and part.truth and part.mark is LessonMark.FAIL:
            yield f"    right: {part.truth}"
    yield from (f"note: {line}" for line in (*grade.notes, *grade.advice))
    yield verdict_line(grade)


def _said(part: LessonPart, why: str) -> str:
    points = f"{part.points} point{'s' if part.points > 1 else ''}"
    given = f" = {part.given}" if part.given else ""
    return f"{part.name}{given}  ({points}){f': {why}' if why else ''}"


def verdict_line(grade: Grade) -> str:
    """`PASS 04-three-round-trips: 6 of 6 points`."""
    left = f", {grade.open} not judged" if grade.open else ""
    return f"{grade.mark.value.upper()} {grade.lesson}: {grade.points} of {grade.of} points{left}"
