"""Lesson 10, whose runs are programs of the student's: as it is handed out and as it is solved, on the kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.lesson import CheckOptions, check_work, solved_answers
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.solution import write_solution
from mrc_testbed.testbed.lessons.work import Work, start
from mrc_testbed.testbed.report.console import open_console
from tests.retry import Inconclusive

LESSON = Path(__file__).parents[2] / "scenarios/lessons/10-your-own-all-reduce"


def checked(work: Work) -> Grade:
    grade = check_work(work, CheckOptions(patient=True, quiet=True), open_console(stderr=True))
    if late := [part.why for part in grade.parts if part.mark is LessonMark.INCONCLUSIVE]:
        raise Inconclusive(late[0])
    return grade


@pytest.mark.timed
@pytest.mark.nightly
def test_the_star_fails_and_the_ring_has_all_points(tmp_path: Path) -> None:
    lesson = load_lesson(LESSON)
    work = start(lesson, tmp_path / "sums")
    shutil.copyfile(LESSON / "solution-answers.yaml", work.folder / "answers.yaml")
    marks = {part.name: part.mark for part in checked(work).parts}
    assert marks["step_time.median <= 1.5 s clean [ring]"] is LessonMark.FAIL
    assert marks["programs_failed == 0"] is LessonMark.PASS
    before = {path.name for path in (work.folder / "runs").iterdir()}
    write_solution(lesson, work.folder)
    checked(work)
    made = {path.name for path in (work.folder / "runs").iterdir()} - before
    assert [name.partition("-")[2] for name in made] == ["ring"], "the star is as it was"
    answers = solved_answers(work)
    (work.folder / "answers.yaml").write_text("".join(f"{name}: {value}\n" for name, value in answers.items()))
    grade = checked(work)
    assert [(part.name, part.why, part.truth) for part in grade.parts if part.mark is not LessonMark.PASS] == []
    assert grade.points == lesson.points
