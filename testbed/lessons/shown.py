"""Lessons and grades as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.lessons.grade import Grade, LessonMark, LessonPart
from mrc_testbed.testbed.lessons.judging import NO_ANSWER
from mrc_testbed.testbed.lessons.lesson import Lesson

_WIDTH, _BELOW = 80, 5 * " "
SIGNS = {
    LessonMark.PASS: "✔",
    LessonMark.FAIL: "✖",
    LessonMark.UNANSWERED: "·",
    LessonMark.WAITING: "…",
    LessonMark.INCONCLUSIVE: "?",
}


def list_lines(lessons: Sequence[Lesson]) -> Iterator[str]:
    """For each a line with number, title, time, points and worlds, and its goal below."""
    width = max((len(one.title) for one in lessons), default=0)
    for one in lessons:
        worlds = "" if len(one.worlds) > 1 else f"  ({one.worlds[0].value} only)"
        number = one.number or one.name
        yield f"{number:>3}  {one.title:<{width}}  {one.time:>7}  {one.points:>2} points{worlds}"
        yield from textwrap.wrap(one.goal, _WIDTH, initial_indent=_BELOW, subsequent_indent=_BELOW)


def grade_lines(grade: Grade) -> Iterator[str]:
    """Each part, then the verdict."""
    told: dict[str, str] = {}
    for part in grade.parts:
        why = part.shown_why
        yield f"{SIGNS[part.mark]} {_said(part, told.get(why, why))}"
        if why and why != NO_ANSWER:
            told[why] = "as above"
    yield from (f"note: {line}" for line in (*grade.notes, *grade.advice))
    yield verdict_line(grade)


def _said(part: LessonPart, why: str) -> str:
    points = f"{part.points} point{'s' if part.points > 1 else ''}"
    given = f" = {part.given}" if part.given else ""
    return f"{part.shown_name}{given}  ({points}){f': {why}' if why else ''}"


def verdict_line(grade: Grade) -> str:
    """`FAIL 04-three-round-trips: 9 of 15 points, 4 not answered`."""
    points = ", ".join((f"{grade.points} of {grade.of} points", *grade.left_out()))
    return f"{grade.mark.value.upper()} {grade.lesson}: {points}"
