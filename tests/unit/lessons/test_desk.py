"""Answers that are typed in a browser, and the student's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.app.lesson_desk import save_answers
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.lessons.shelf import find_lesson
from mrc_testbed.testbed.lessons.work import Work, start


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return start(find_lesson("6"), tmp_path / "mine")


def test_a_text_is_written_as_it_was_typed(work: Work) -> None:
    text = "the T1 hits senders #1 to #6, and: a link only four"
    save_answers(work, {"evidence": text}, {"evidence": ""})
    assert work.answers()["evidence"] == text


@pytest.mark.parametrize(("typed", "written"), [("4", 4), ("0.25", 0.25), ("~", "~"), ("yes", "yes"), ("", None)])
def test_a_number_is_a_number_and_anything_else_a_text(work: Work, typed: str, written: object) -> None:
    save_answers(work, {"p_grey": typed}, {"p_grey": ""})
    assert work.answers()["p_grey"] == written


def test_what_was_changed_in_an_editor_is_not_written_over(work: Work) -> None:
    save_answers(work, {"p_grey": "4"}, {"p_grey": ""})
    with pytest.raises(UsageError, match="p_grey is '4' in answers"):
        save_answers(work, {"p_grey": "5"}, {"p_grey": ""})
    assert work.answers()["p_grey"] == 4
    save_answers(work, {"p_grey": "5"}, {"p_grey": "4"})
    assert work.answers()["p_grey"] == 5


def test_comments_stay(work: Work) -> None:
    before = work.answers_file.read_text().count("#")
    save_answers(work, {"p_grey": "4"}, {})
    assert before
    assert work.answers_file.read_text().count("#") == before
