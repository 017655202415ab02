"""Lessons 10 and 11, whose runs are programs of the student's: as handed out and as solved, on the kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.lesson import CheckOptions, check_work, solved_answers
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark
from mrc_testbed.testbed.lessons.lesson import Lesson
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.solution import write_solution
from mrc_testbed.testbed.lessons.work import Work, start
from mrc_testbed.testbed.report.console import open_console
from tests.retry import Inconclusive

LESSONS = Path(__file__).parents[2] / "scenarios/lessons"


def checked(work: Work) -> Grade:
    grade = check_work(work, CheckOptions(patient=True, quiet=True), open_console(stderr=True))
    if late := [part.why for part in grade.parts if part.mark is LessonMark.INCONCLUSIVE]:
        raise Inconclusive(late[0])
    return grade


def made_by(work: Work, before: set[str]) -> list[str]:
    """Names of the runs since."""
    made = {path.name for path in (work.folder / "runs").iterdir()} - before
    return sorted(name.partition("-")[2] for name in made)


def solves(lesson: Lesson, work: Work, runs: list[str]) -> None:
    """The solution, with its answers, has all points; only these are run again."""
    before = {path.name for path in (work.folder / "runs").iterdir()}
    write_solution(lesson, work.folder)
    checked(work)
    assert made_by(work, before) == runs
    answers = solved_answers(work)
    (work.folder / "answers.yaml").write_text("".join(f"{name}: {value}\n" for name, value in answers.items()))
    grade = checked(work)
    assert [(part.name, part.why, part.truth) for part in grade.parts if part.mark is not LessonMark.PASS] == []
    assert grade.points == lesson.points


def handed_out(number_and_name: str, folder: Path) -> tuple[Lesson, Work, dict[str, LessonMark]]:
    """A lesson as it is handed out, with right answers: its marks by the name of the part."""
    lesson = load_lesson(LESSONS / number_and_name)
    work = start(lesson, folder)
    shutil.copyfile(LESSONS / number_and_name / "solution-answers.yaml", work.folder / "answers.yaml")
    return lesson, work, {part.name: part.mark for part in checked(work).parts}


@pytest.mark.timed
@pytest.mark.nightly
def test_the_star_fails_and_the_ring_has_all_points(tmp_path: Path) -> None:
    lesson, work, marks = handed_out("10-your-own-all-reduce", tmp_path / "sums")
    assert marks["step_time.median <= 1.5 s clean [ring]"] is LessonMark.FAIL
    assert marks["programs_failed == 0"] is LessonMark.PASS
    solves(lesson, work, ["ring"])  # the star is as it was


@pytest.mark.timed
@pytest.mark.nightly
def test_who_looks_at_the_last_byte_reads_too_early_and_who_waits_for_the_immediate_does_not(tmp_path: Path) -> None:
    lesson, work, marks = handed_out("11-write-into-memory", tmp_path / "memory")
    assert marks["programs_failed == 0"] is LessonMark.FAIL
    assert marks["qp_errors == 0"] is LessonMark.PASS
    logs = "".join(path.read_text() for path in (work.folder / "runs").glob("*/programs/*.log"))
    assert "half a second later 0 are not" in logs
    solves(lesson, work, ["memory"])
