"""Courses: their solutions are printed with the teacher's key alone, and self-learners need none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.lessons import new
from mrc_testbed.testbed.lessons.load import load_lesson
from tests.unit.calls import Call, Ended

TEMPLATE = Path(new.__file__).parent / "template"
Lesson = Callable[..., Ended]


@pytest.fixture
def lesson(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    """`lesson("start", "term/4", "anna")` in an empty folder, beside the lesson `mine`, with no state."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copytree(TEMPLATE, tmp_path / "mine")
    return lambda *words: call("lesson", *words)


def test_a_course_has_no_solution_and_its_key_has_them(lesson: Lesson, tmp_path: Path) -> None:
    made = lesson("course", "term", "4", "mine")
    assert made.status == 0
    assert "term-key.json: keep it" in made.out
    assert list((tmp_path / "term").rglob("solution*")) == []
    assert {path.name for path in (tmp_path / "term").iterdir()} == {"course.yaml", "04-three-round-trips", "mine"}
    assert load_lesson(tmp_path / "term/mine").points == 4
    key = tmp_path / "term-key.json"
    assert sorted(json.loads(key.read_text())["lessons"]["mine"]) == ["solution-answers.yaml", "solution.yaml"]
    assert key.stat().st_mode & 0o077 == 0
    assert "Three round trips" in lesson("list", "term").out


def test_students_print_a_solution_with_the_key_alone(lesson: Lesson, tmp_path: Path) -> None:
    lesson("course", "term", "mine")
    lesson("start", "term/mine", "anna")
    for name in ("anna", "term/mine"):
        refused = lesson("solution", name)
        assert refused.status == ExitCode.USAGE
        assert "is part of the course term: its solution needs the key that the teacher hands out" in refused.err
        assert "0.9" not in refused.out + refused.err
    opened = lesson("solution", "anna", "--key", "term-key.json")
    assert "planes: 8" in opened.out
    assert "left: 0.9" in opened.out
    (tmp_path / "other").write_text("{}")
    assert "other: is not the key of the course term" in lesson("solution", "anna", "--key", "other").err
    assert "gone: cannot be read: No such file" in lesson("solution", "anna", "--key", "gone").err


def test_the_shipped_solution_is_closed_where_its_course_began_and_opens_with_the_key(lesson: Lesson) -> None:
    lesson("course", "term", "4", "6")
    assert lesson("solution", "6").status == 0, "making a course closes nothing"
    lesson("start", "term/4", "anna")
    assert "is part of the course term" in lesson("solution", "6").err
    assert lesson("solution", "5").status == 0, "it is not of the course"
    assert lesson("solution", "6", "--key", "term-key.json").status == 0
    assert lesson("solution", "4").status == 0, "the course is over"
    assert lesson("solution", "anna").status == ExitCode.USAGE, "its folder has no solution"


def test_who_learns_alone_needs_no_key(lesson: Lesson) -> None:
    lesson("start", "4", "anna")
    assert lesson("solution", "4").status == 0
    assert "--key: lesson 04-three-round-trips is of no course here" in lesson("solution", "4", "--key", "x").err


def test_a_course_is_checked_and_graded(lesson: Lesson, tmp_path: Path) -> None:
    lesson("course", "term", "mine")
    lesson("start", "term/mine", "class/anna")
    shutil.copy(TEMPLATE / "solution.yaml", tmp_path / "class/anna/scenario.yaml")
    shutil.copy(TEMPLATE / "solution-answers.yaml", tmp_path / "class/anna/answers.yaml")
    assert lesson("check", "class/anna", "--virtual").out.endswith("PASS mine: 4 of 4 points\n")
    graded = lesson("grade", "class", "--virtual", "--lesson", "term")
    assert "PASS anna mine: 4 of 4" in graded.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("format: 2\ncourse: a\nkey: b\n", "term/course.yaml:1:9: format: the format is 2"),
        ("format: 1\ncourse: a\n", "term/course.yaml:1:1: course.yaml: lacks key"),
    ],
)
def test_a_mistake_in_a_course_has_its_place(lesson: Lesson, tmp_path: Path, text: str, told: str) -> None:
    lesson("course", "term", "mine")
    (tmp_path / "term/course.yaml").write_text(text)
    assert told in lesson("solution", "term/mine").err


def test_a_course_is_written_over_nothing_and_made_of_no_course(lesson: Lesson, tmp_path: Path) -> None:
    lesson("course", "term", "mine")
    assert "term: is there already" in lesson("course", "term", "mine").err
    assert "is of a course already" in lesson("course", "other", "term/mine").err
    assert not (tmp_path / "other").exists()
    assert "there is no lesson in it" in lesson("list", "state").err
