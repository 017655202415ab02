"""A student who does a lesson in virtual time."""

from __future__ import annotations

import fcntl
import re
from functools import cache
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.lesson import CheckOptions, evidence_of
from mrc_testbed.testbed.lessons import new
from mrc_testbed.testbed.lessons.grade import Grade
from mrc_testbed.testbed.lessons.judging import judge_lesson
from mrc_testbed.testbed.lessons.lesson import Answers, Lesson
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.shelf import shipped_lessons
from mrc_testbed.testbed.lessons.solution import own_answers, solution_answers, write_solution
from mrc_testbed.testbed.lessons.work import Work, open_work, start
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.scenario.load.shipped import CHECK_FILE
from mrc_testbed.testbed.scenario.model.transports import WorldKind

LESSONS = (*shipped_lessons(), Path(new.__file__).parent / "template")
"""And the one that `lesson new` makes: it is a lesson, too."""
STUDENTS = ("anna", "bo", "chidi")
"""Three seeds: each draws them from the name."""


@cache
def loaded(folder: Path) -> Lesson:
    """Read once: that takes half a second."""
    return load_lesson(folder)


def in_virtual_time(folder: Path) -> bool:
    """Whether it can be done there. Read from its file alone: whole lessons take seconds, and every worker collects."""
    words = re.search(r"^worlds: \[(.*)\]$", (folder / CHECK_FILE).read_text(), re.M)
    return words is None or WorldKind.VIRTUAL.value in words[1]


def named(folder: Path) -> str:
    return folder.name


class Student:
    """Has started the lesson, and solved it or left it as it was handed out; its runs are made. `answers`: right ones,
    also where the run draws them."""

    def __init__(self, lesson: Lesson, folder: Path, solved: bool) -> None:
        self.lesson = lesson
        if folder.exists():
            self.work = open_work(folder)
        else:
            self.work = start(lesson, folder, seed_by_name=True)
            if solved:
                write_solution(lesson, folder)
        options = CheckOptions(virtual=True, patient=True, quiet=True)
        self.evidence = evidence_of(self.work, self.work.answers(), options, open_console(stderr=True))
        self.answers: Answers = own_answers(lesson, solution_answers(lesson), self.evidence)

    def grade(self, **changed: Any) -> Grade:
        """With these answers in place of the right ones."""
        return judge_lesson(self.lesson, {**self.answers, **changed}, self.evidence)

    def blank(self) -> Grade:
        """Without any answer."""
        return judge_lesson(self.lesson, {}, self.evidence)


class Class:
    """Each student once, for all tests and workers: the second one finds the runs made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._students: dict[Path, Student] = {}

    def student(self, lesson: Path, name: str) -> Student:
        """Who has solved it."""
        return self._shared(lesson, self._folder / lesson.name / name, True)

    def beginner(self, lesson: Path) -> Student:
        """Somebody called as the first student, with the scenarios as they were handed out."""
        return self._shared(lesson, self._folder / lesson.name / "as-handed-out" / STUDENTS[0], False)

    def _shared(self, lesson: Path, folder: Path, solved: bool) -> Student:
        if folder not in self._students:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with folder.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._students[folder] = Student(loaded(lesson), folder, solved)
        return self._students[folder]


def hand_in(printed: str, work: Work) -> None:
    """Put what `lesson solution` prints into the files that it names, as a student would copy it."""
    names = [name for _, name in work.lesson.handed_out()]
    parts = re.split(rf"^# ({'|'.join(map(re.escape, names))})\n", printed, flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        (work.folder / name).write_text(text, encoding="utf-8")
