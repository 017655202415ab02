"""Every lesson that is shipped: its starter fails, its solution passes whatever the seed, each wrong answer costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.lessons.fitting import cells_of
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark
from mrc_testbed.testbed.lessons.judging import judge_lesson
from mrc_testbed.testbed.lessons.lesson import Stage
from mrc_testbed.testbed.lessons.solution import solution_answers, solution_lines
from mrc_testbed.testbed.lessons.work import start
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.topos.budget import usual_capacity
from mrc_testbed.topos.cost import cpus
from tests.lessons.stage import LESSONS, STUDENTS, Class, hand_in, in_virtual_time, loaded, named
from tests.lessons.wrong import gives_away, wrong_answer

LONGEST_S = 40
MOST = 0.9
"""Of what two cores carry."""
IN_VIRTUAL_TIME = [one for one in LESSONS if in_virtual_time(one)]
each_student = pytest.mark.parametrize(
    "name", [STUDENTS[0], *(pytest.param(one, marks=pytest.mark.nightly) for one in STUDENTS[1:])]
)
"""Another seed each; the others by night."""
each_lesson = pytest.mark.parametrize("folder", LESSONS, ids=named)
each_virtual_lesson = pytest.mark.parametrize("folder", IN_VIRTUAL_TIME, ids=named)


@each_virtual_lesson
@pytest.mark.nightly(keep=1)
def test_the_untouched_starter_fails(folder: Path, pupils: Class) -> None:
    grade = pupils.beginner(folder).blank()
    assert grade.mark is LessonMark.FAIL
    assert grade.points < grade.of


@each_virtual_lesson
@each_student
@pytest.mark.nightly(keep=2)
def test_the_solution_has_all_points_whatever_the_seed(folder: Path, name: str, pupils: Class) -> None:
    grade = pupils.student(folder, name).grade()
    assert [(part.name, part.why, part.truth) for part in grade.parts if part.mark is not LessonMark.PASS] == []
    assert grade.points == grade.of == loaded(folder).points


@each_virtual_lesson
@pytest.mark.nightly
def test_each_single_wrong_answer_fails(folder: Path, pupils: Class) -> None:
    student = pupils.student(folder, STUDENTS[0])
    for question in student.lesson.questions:
        wrong = wrong_answer(question, student.answers[question.name], student.evidence)
        grade = student.grade(**{question.name: wrong})
        assert grade.mark is LessonMark.FAIL, (question.name, wrong)
        assert [part.name for part in grade.parts if part.mark is not LessonMark.PASS] == [question.name]


@each_virtual_lesson
@pytest.mark.nightly
def test_right_answers_are_not_enough_where_there_is_something_to_build(folder: Path, pupils: Class) -> None:
    lesson = pupils.beginner(folder).lesson
    if any(lesson.scenario_file(run, Stage.SOLUTION) != lesson.scenario_file(run, Stage.START) for run in lesson.runs):
        assert unbuilt(folder, pupils).mark is LessonMark.FAIL


def unbuilt(folder: Path, pupils: Class) -> Grade:
    """All answers of who solved it, and the scenarios as they were."""
    return pupils.beginner(folder).grade(**pupils.student(folder, STUDENTS[0]).answers)


@each_lesson
def test_its_runs_are_short_and_two_cores_carry_them(folder: Path) -> None:
    lesson = loaded(folder)
    assert (WorldKind.VIRTUAL in lesson.worlds) is (folder in IN_VIRTUAL_TIME)
    for stage in Stage:
        cells = cells_of(lesson, stage)
        for run in lesson.runs:
            assert sum(one.scenario.expected_ns for one in cells if one.run == run) / 1e9 <= LONGEST_S * 3
        for one in cells:
            assert one.scenario.expected_ns / 1e9 <= LONGEST_S, (one.run, one.settings)
            if WorldKind.KERNEL in lesson.worlds:
                takes = cpus(one.scenario.shape(), offered_load(one.scenario), one.scenario.transport.cost)
                assert takes <= MOST * usual_capacity(one.scenario.transport.cost).cpus, (one.run, one.settings)


@each_virtual_lesson
@each_student
@pytest.mark.nightly(keep=2)
def test_what_lesson_solution_prints_is_the_whole_solution(
    folder: Path, name: str, pupils: Class, tmp_path: Path
) -> None:
    """Given back as printed, before the runs and, with what only they have, after them."""
    student = pupils.student(folder, name)
    work = start(student.lesson, tmp_path / name, seed_by_name=True)
    hand_in("\n".join(solution_lines(student.lesson)), work)
    drawn = {one.name for one in student.lesson.questions if solution_answers(student.lesson).get(one.name) is None}
    grade = judge_lesson(student.lesson, work.answers(), student.evidence)
    assert {part.name for part in grade.parts if part.mark is not LessonMark.PASS} == drawn
    hand_in("\n".join(solution_lines(student.lesson, student.answers)), work)
    assert judge_lesson(student.lesson, work.answers(), student.evidence).points == student.lesson.points


@each_virtual_lesson
@pytest.mark.nightly(keep=2)
def test_no_right_prediction_is_wrong_before_anything_is_built(folder: Path, pupils: Class) -> None:
    predicted = {one.name for one in pupils.beginner(folder).lesson.questions if one.predicted}
    wrong = [part for part in unbuilt(folder, pupils).parts if part.mark is LessonMark.FAIL]
    assert [(part.name, part.why) for part in wrong if part.name in predicted] == []


@each_virtual_lesson
@pytest.mark.nightly(keep=2)
def test_the_list_of_checks_gives_no_answer_away(folder: Path, pupils: Class) -> None:
    """To a student who has built everything, or nothing, and answered nothing."""
    solved = pupils.student(folder, STUDENTS[0])
    for grade in (solved.blank(), pupils.beginner(folder).blank()):
        expected = grade.parts[: len(solved.lesson.expect)]
        lines = [f"{part.shown_name}: {'' if part.until else part.shown_why}" for part in expected]
        told = [
            (question.name, line)
            for question in solved.lesson.questions
            for line in lines
            if gives_away(line, question, solved.answers[question.name])
        ]
        assert told == []
