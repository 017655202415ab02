"""Every lesson that is shipped: its starter fails, its solution passes whatever the seed, each wrong answer costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.lessons.fitting import cells_of
from testbed.lessons.grade import LessonMark
from testbed.lessons.lesson import Stage
from testbed.lessons.load import load_lesson
from testbed.scenario.load import offered_load
from testbed.scenario.transports import WorldKind
from tests.lessons.stage import LESSONS, STUDENTS, Class, named, unbuilt, untouched
from tests.lessons.wrong import wrong_answer
from topos.budget import usual_capacity
from topos.cost import cpus

LONGEST_S = 40
MOST = 0.9
"""Of what two cores carry."""
IN_VIRTUAL_TIME = [one for one in LESSONS if WorldKind.VIRTUAL in load_lesson(one).worlds]
each_lesson = pytest.mark.parametrize("folder", LESSONS, ids=named)
each_virtual_lesson = pytest.mark.parametrize("folder", IN_VIRTUAL_TIME, ids=named)


@each_virtual_lesson
def test_the_untouched_starter_fails(folder: Path, tmp_path: Path) -> None:
    grade = untouched(load_lesson(folder), tmp_path / "untouched")
    assert grade.mark is LessonMark.FAIL
    assert grade.points < grade.of


@each_virtual_lesson
@pytest.mark.parametrize("name", STUDENTS)
def test_the_solution_has_all_points_whatever_the_seed(folder: Path, name: str, pupils: Class) -> None:
    grade = pupils.student(folder, name).grade()
    assert [(part.name, part.why, part.truth) for part in grade.parts if part.mark is not LessonMark.PASS] == []
    assert grade.points == grade.of == load_lesson(folder).points


@each_virtual_lesson
def test_each_single_wrong_answer_fails(folder: Path, pupils: Class) -> None:
    student = pupils.student(folder, STUDENTS[0])
    for question in student.lesson.questions:
        wrong = wrong_answer(question, student.answers[question.name], student.evidence)
        grade = student.grade(**{question.name: wrong})
        assert grade.mark is LessonMark.FAIL, (question.name, wrong)
        assert [part.name for part in grade.parts if part.mark is not LessonMark.PASS] == [question.name]


@each_virtual_lesson
def test_right_answers_are_not_enough_where_there_is_something_to_build(
    folder: Path, pupils: Class, tmp_path: Path
) -> None:
    student = pupils.student(folder, STUDENTS[0])
    lesson = student.lesson
    if any(lesson.scenario_file(run, Stage.SOLUTION) != lesson.scenario_file(run, Stage.START) for run in lesson.runs):
        assert unbuilt(student, tmp_path).mark is LessonMark.FAIL


@each_lesson
def test_its_runs_are_short_and_two_cores_carry_them(folder: Path) -> None:
    lesson = load_lesson(folder)
    for stage in Stage:
        cells = cells_of(lesson, stage)
        for run in lesson.runs:
            assert sum(one.scenario.expected_ns for one in cells if one.run == run) / 1e9 <= LONGEST_S * 3
        for one in cells:
            assert one.scenario.expected_ns / 1e9 <= LONGEST_S, (one.run, one.settings)
            if WorldKind.KERNEL in lesson.worlds:
                takes = cpus(one.scenario.shape(), offered_load(one.scenario), one.scenario.transport)
                assert takes <= MOST * usual_capacity(one.scenario.transport).cpus, (one.run, one.settings)
