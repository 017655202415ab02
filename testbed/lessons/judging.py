"""A lesson held against what a student wrote and ran: the points of each part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrc_testbed.testbed.lessons.beside import Beside
from mrc_testbed.testbed.lessons.cells import InCell, bracketed
from mrc_testbed.testbed.lessons.evidence import CellRun, Evidence, NotKnown, NotThere
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark, LessonPart, merged
from mrc_testbed.testbed.lessons.kinds import FreeText, Unusable
from mrc_testbed.testbed.lessons.lesson import PASSES, Answers, Lesson, LessonQuestion, Wanted

NO_ANSWER = "no answer yet"
NOT_BUILT = "it is about the run that you are to build"


def judge_lesson(lesson: Lesson, answers: Answers, evidence: Evidence, notes: Iterable[str] = ()) -> Grade:
    """Every part of it; never raises because of what the student wrote or ran."""
    expected = [_expected(wanted, evidence) for wanted in lesson.expect]
    parts = list(zip(lesson.expect, expected, strict=True))
    failed = {wanted.name for wanted, part in parts if wanted.name and part.mark is LessonMark.FAIL}
    answered = [
        judge_answer(question, answers.get(question.name), evidence, question.once in failed)
        for question in lesson.questions
    ]
    right = {part.name for part in answered if part.mark is LessonMark.PASS}
    told = (_told(wanted, part, right) for wanted, part in parts)
    return Grade(lesson.name, (*told, *answered), tuple(notes))


def _told(wanted: Wanted, part: LessonPart, right: Collection[str]) -> LessonPart:
    """The part in other words, as long as its own would give an answer away."""
    until = tuple(name for name in wanted.gives_away if name not in right)
    return replace(part, says=wanted.says, until=until) if until else part


def judge_answer(question: LessonQuestion, given: Any, evidence: Evidence, waits: bool = False) -> LessonPart:
    """One answer. `given` None: there is none. `waits`: the run that it is about is not built yet."""
    shown = "" if given is None or isinstance(question.kind, FreeText) else _shown(given)

    def part(mark: LessonMark, why: str = "", truth: str = "") -> LessonPart:
        return LessonPart(question.name, mark, question.points, shown, why, truth)

    if given is None:
        return part(LessonMark.UNANSWERED, NO_ANSWER)
    try:
        found = question.kind.judge(given, evidence)
    except Unusable as wrong:
        return part(LessonMark.FAIL, str(wrong))
    except NotThere as lacking:
        return part(LessonMark.WAITING, str(lacking))
    except NotKnown as reason:
        return part(LessonMark.INCONCLUSIVE, str(reason))
    if waits:
        return part(LessonMark.WAITING, NOT_BUILT)
    return part(LessonMark.PASS if found.right else LessonMark.FAIL, found.why, found.truth)


def _shown(given: Any) -> str:
    return ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def _expected(wanted: Wanted, evidence: Evidence) -> LessonPart:
    """An expectation, in every cell that it is about."""
    name = " ".join(filter(None, (wanted.that.text, bracketed(wanted.that.words))))
    if wanted.that.text == PASSES:
        name = " ".join(filter(None, ("the run passes", bracketed(wanted.that.words))))
    try:
        cells = evidence.meant(wanted.that.words)
    except NotThere as wrong:
        return LessonPart(name, LessonMark.FAIL, wanted.points, why=str(wrong))
    found = [_in_cell(wanted.that, cell) for cell in cells]
    mark = merged([mark for mark, _ in found])
    why = next((why for each, why in found if each is mark), "")
    return LessonPart(name, mark, wanted.points, why=why)


def _in_cell(that: InCell, cell: CellRun) -> tuple[LessonMark, str]:
    try:
        held, why = cell.passes() if that.text == PASSES else cell.holds(that.text)
    except NotThere as wrong:
        return LessonMark.FAIL, str(wrong)
    except NotKnown as reason:
        return LessonMark.INCONCLUSIVE, str(reason)
    where = bracketed(cell.settings)
    return (LessonMark.PASS if held else LessonMark.FAIL), " ".join(filter(None, (why, where)))


def unmet(lesson: Lesson, scenarios: Mapping[str, Sequence[Beside]]) -> dict[str, str]:
    """By run, why its scenario may not be judged."""
    found: dict[str, str] = {}
    for required in lesson.requires:
        why = required.unmet(scenarios[required.run])
        if why:
            found.setdefault(required.run, f"{required.run}.yaml: {why}")
    return found
