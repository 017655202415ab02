"""A student who does a lesson in virtual time."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

from testbed.app.lesson import CheckOptions, evidence_of
from testbed.lessons import new
from testbed.lessons.evidence import Evidence
from testbed.lessons.grade import Grade
from testbed.lessons.judging import judge_lesson
from testbed.lessons.lesson import Answers, Lesson
from testbed.lessons.load import load_lesson
from testbed.lessons.shelf import shipped_lessons
from testbed.lessons.solution import own_answers, solution_answers, write_solution
from testbed.lessons.work import Work, open_work, start
from testbed.report.console import open_console

LESSONS = (*shipped_lessons(), Path(new.__file__).parent / "template")
"""And the one that `lesson new` makes: it is a lesson, too."""
STUDENTS = ("anna", "bo", "chidi")
"""Three seeds: each draws them from the name."""


def named(folder: Path) -> str:
    return folder.name


class Student:
    """Has solved the lesson, and its runs are made. `answers`: right ones, also where the run draws them."""

    def __init__(self, lesson: Lesson, folder: Path, virtual: bool = True) -> None:
        self.lesson = lesson
        if folder.exists():
            self.work = open_work(folder)
        else:
            self.work = start(lesson, folder, seed_by_name=True)
            write_solution(lesson, folder)
        self.evidence = _evidence(self.work, virtual)
        self.answers: Answers = own_answers(lesson, solution_answers(lesson), self.evidence)

    def grade(self, **changed: Any) -> Grade:
        """With these answers in place of the right ones."""
        return judge_lesson(self.lesson, {**self.answers, **changed}, self.evidence)


def untouched(lesson: Lesson, folder: Path) -> Grade:
    """What the starter comes to as it was handed out."""
    work = start(lesson, folder)
    return judge_lesson(lesson, work.answers(), _evidence(work, True))


def _evidence(work: Work, virtual: bool) -> Evidence:
    options = CheckOptions(virtual=virtual, patient=True, quiet=True)
    return evidence_of(work, work.answers(), options, open_console(stderr=True))


def unbuilt(student: Student, folder: Path) -> Grade:
    """Somebody of the same name who has all answers, and left the scenarios as they were."""
    work = start(student.lesson, folder / student.work.student, seed_by_name=True)
    return judge_lesson(student.lesson, student.answers, _evidence(work, True))


class Class:
    """Each student once, for all tests and workers: whoever comes second finds the runs made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._students: dict[tuple[Path, str], Student] = {}

    def student(self, lesson: Path, name: str) -> Student:
        key = (lesson, name)
        if key not in self._students:
            work = self._folder / lesson.name / name
            work.parent.mkdir(parents=True, exist_ok=True)
            with work.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._students[key] = Student(load_lesson(lesson), work)
        return self._students[key]
