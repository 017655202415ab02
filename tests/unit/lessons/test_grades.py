"""What students are called in the table of a class, and that a spreadsheet reads it."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

import pytest

from mrc_testbed.testbed.lessons.grades import GradedWork, as_csv, students_of


@pytest.mark.parametrize(
    ("works", "students"),
    [
        ({"s/anna/mine": "1", "s/björn/mine": "1"}, ["anna", "björn"]),
        ({"s/anna/mine": "1", "s/björn/mine": "2"}, ["anna", "björn"]),
        ({"s/anna/mine": "1"}, ["anna"]),
        ({"s/anna/one": "1", "s/anna/two": "2", "s/bo/one": "1"}, ["anna", "anna", "bo"]),
        ({"s/anna/01-x": "01-x", "s/anna/02-y": "02-y", "s/bo/01-x": "01-x"}, ["anna", "anna", "bo"]),
        ({"s/anna": "1", "s/bo": "1"}, ["anna", "bo"]),
        ({"s/anna": "1"}, ["anna"]),
        ({"mon/anna": "1", "mon/bo": "1", "tue/anna": "1"}, ["mon/anna", "bo", "tue/anna"]),
        ({"mon/anna/mine": "1", "tue/anna/mine": "1", "tue/bo/mine": "1"}, ["mon/anna", "tue/anna", "bo"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_students_have_names_of_their_own(tmp_path: Path, works: dict[str, str], students: list[str]) -> None:
    found = students_of({tmp_path / folder: lesson for folder, lesson in works.items()})
    assert list(found.values()) == students


def test_a_spreadsheet_knows_that_it_is_utf_8() -> None:
    written = as_csv([GradedWork("björn", "1", 4)]).encode()
    assert written.startswith(BOM_UTF8 + b"student,lesson")
    assert "björn" in written.decode("utf-8-sig")


def test_a_terminal_obeys_no_name_of_a_student() -> None:
    assert "\x1b" not in as_csv([GradedWork("eve\x1b[2J", "1", 4, reason="\x1b]0;x\x07")])
