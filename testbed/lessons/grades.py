"""Grades of a class: whose folders there are, and their rows for a table. Pure but for looking at folders."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.inputs import BYTE_ORDER_MARK
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark
from mrc_testbed.testbed.lessons.work import MARKER
from mrc_testbed.testbed.terminal import plain

COLUMNS = ("student", "lesson", "points", "of", "verdict", "reason")
_OF_THE_EXAMPLES = "mine"
"""What README.md and docs/lessons.md call the folder of a lesson."""
_FORMULA = ("=", "+", "-", "@", "\t")
"""What a spreadsheet takes for a formula; a student can name a folder so."""


@dataclass(frozen=True, slots=True)
class GradedWork:
    """One lesson of one student. `grade` None: it could not be judged as it is, `reason` says why; `mark` is then
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
            reason = "; ".join(filter(None, (self.grade.reason, *self.grade.left_out("points"), *self.grade.notes)))
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


def students_of(works: Mapping[Path, str]) -> dict[Path, str]:
    """What the student of each folder is called; `works`: the lesson that was started in it.

    By its own folder, or by the one above where that says nothing: where it is called as the lesson or as in our
    examples, and where another student's folder has the same name, as with `anna/lesson-1` and `bo/lesson-1`.
    """
    whole = {folder: _with_a_name(folder.resolve(), lesson) for folder, lesson in works.items()}
    homes = _homes({path: lesson for path, lesson in zip(whole.values(), works.values(), strict=True)})
    people = {folder: path.parent if path.parent in homes else path for folder, path in whole.items()}
    return {folder: _shortest(path, set(people.values())) for folder, path in people.items()}


def _with_a_name(folder: Path, lesson: str) -> Path:
    return folder.parent if folder.name in (lesson, _OF_THE_EXAMPLES) else folder


def _homes(works: Mapping[Path, str]) -> set[Path]:
    """Folders of students with lessons in them. One with a lesson twice is a class, whose folders are students."""
    lessons = Counter((path.parent, lesson) for path, lesson in works.items())
    classes = {home for (home, _), count in lessons.items() if count > 1}
    homes: dict[str, set[Path]] = {}
    for path in works:
        homes.setdefault(path.name, set()).add(path.parent)
    return {home for named in homes.values() if len(named) > 1 and not named & classes for home in named}


def _shortest(path: Path, others: Collection[Path]) -> str:
    """As many folders as no other path ends with."""
    ends = (path.parts[-count:] for count in range(1, len(path.parts)))
    found = (end for end in ends if all(other == path or other.parts[-len(end) :] != end for other in others))
    return "/".join(next(found, path.parts))


def as_csv(graded: Sequence[GradedWork]) -> str:
    """A line for each, with a header, and before it the mark by which spreadsheets know UTF-8."""
    out = StringIO()
    out.write(BYTE_ORDER_MARK)
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in graded:
        writer.writerow({key: _harmless(value) for key, value in one.row.items()})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """Neither a spreadsheet nor a terminal obeys it."""
    if not isinstance(value, str):
        return value
    return plain(f"'{value}" if value.startswith(_FORMULA) else value)
