"""Answers as students give them (answers.yaml): each misconception fails and costs nothing else, and each other way to
write a right answer counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mrc_testbed.testbed.lessons.grade import LessonMark
from mrc_testbed.testbed.lessons.shelf import LESSONS, shipped_lessons
from tests.lessons.stage import STUDENTS, Class, Student, in_virtual_time

GIVEN: Mapping[str, Mapping[str, Mapping[str, Any]]] = YAML(typ="safe").load(Path(__file__).with_name("answers.yaml"))
TIMES = " x"
each_lesson = pytest.mark.parametrize("name", GIVEN)


def failed(student: Student, question: str, given: Any) -> list[str]:
    """Parts that do not pass with this answer in place of the right one."""
    if str(given).endswith(TIMES):
        given = f"{float(str(given).removesuffix(TIMES)) * float(student.answers[question]):.6g}"
    return [part.name for part in student.grade(**{question: given}).parts if part.mark is not LessonMark.PASS]


@each_lesson
@pytest.mark.nightly(keep=2)
def test_what_students_get_wrong_fails(name: str, pupils: Class) -> None:
    student = pupils.student(LESSONS / name, STUDENTS[0])
    found = {
        (question, str(given)): failed(student, question, given)
        for question, answers in GIVEN[name]["wrong"].items()
        for given in answers
    }
    assert {key: parts for key, parts in found.items() if parts != [key[0]]} == {}


@each_lesson
@pytest.mark.nightly(keep=2)
def test_what_is_right_in_other_words_passes(name: str, pupils: Class) -> None:
    student = pupils.student(LESSONS / name, STUDENTS[0])
    found = {
        (question, str(given)): failed(student, question, given)
        for question, answers in GIVEN[name]["right"].items()
        for given in answers
    }
    assert {key: parts for key, parts in found.items() if parts} == {}


def test_every_lesson_in_virtual_time_has_two_wrong_answers_and_a_right_one() -> None:
    assert set(GIVEN) == {one.name for one in shipped_lessons() if in_virtual_time(one)}
    for name, given in GIVEN.items():
        wrong = sum(len(answers) for answers in given["wrong"].values())
        assert wrong >= 2, name
        assert sum(len(answers) for answers in given["right"].values()) >= 1, name
