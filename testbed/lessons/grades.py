"""Grades of a class: whose folders there are, and their rows for a table. Pure but for looking at folders."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.lessons.grade import Grade, LessonMark
from testbed.lessons.work import MARKER

COLUMNS = ("student", "lesson", "points", "of", "verdict", "reason")
_FORMULA = ("=", "+", "-", "@", "\t")
"""What a spreadsheet takes for a formula; a student can name a folder so."""


@dataclass(frozen=True, slots=True)
class GradedWork:
    """One lesson of one student. `grade` None: it could not be judged as it stands, `reason` says why; `mark` is then
    INCONCLUSIVE where the student can do nothing about it, and `of` 0."""

    student: str
    lesson: str
    of: int
    grade: Grade | None = None
    reason: str = ""
    mark: LessonMark = LessonMark.FAIL

    @property
    def row(self) -> dict[str, Any]:
        """By the names of COLUMNS."""
        if self.grade is None:
            mark, points, of, reason = self.mark, 0, self.of, self.reason
        else:
            mark, points, of = self.grade.mark, self.grade.points, self.grade.of
            left = f"{self.grade.open} points not judged" if self.grade.open else ""
            reason = "; ".join(filter(None, (self.grade.reason, left, *self.grade.notes)))
        return dict(zip(COLUMNS, (self.student, self.lesson, points, of, mark.value, reason), strict=True))

    def as_dict(self) -> dict[str, Any]:
        """The row, and every part of the lesson."""
        return {**self.row, **({"parts": self.grade.as_dict()["parts"]} if self.grade else {})}


def lesson_folders(folders: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The folders in which lessons were started, each of those given or one in it, and a line for each that is left
    out. Raises UsageError if none remains."""
    found: list[Path] = []
    left_out: list[str] = []
    for folder in folders:
        try:
            inside = list(_started(folder))
            why = "" if inside else "no lesson was started here" if folder.is_dir() else "is no folder"
        except OSError as error:
            inside, why = [], f"cannot be read: {error.strerror}"
        found += inside
        left_out += [f"{folder}: {why}"] if why else []
    if not found:
        raise UsageError("\n".join(left_out))
    return found, left_out


def _started(folder: Path) -> Iterator[Path]:
    if (folder / MARKER).is_file():
        yield folder
    elif folder.is_dir():
        yield from sorted(path.parent for path in folder.glob(f"*/{MARKER}"))


def as_csv(graded: Sequence[GradedWork]) -> str:
    """A line for each, with a header."""
    out = StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in graded:
        writer.writerow({key: _harmless(value) for key, value in one.row.items()})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
