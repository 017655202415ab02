"""The lessons of a class, graded one after the other; the table is whole at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.app.lesson import UNREADABLE, CheckOptions, check_work, reason_of
from testbed.errors import RunError
from testbed.lessons.grades import GradedWork, as_csv
from testbed.lessons.work import open_work, with_seed_by_name
from testbed.report.console import PatientConsole
from testbed.rundir.files import write_json, write_whole
from testbed.rundir.ownership import give

CSV_FILE, JSON_FILE = "grades.csv", "grades.json"


def grade_all(
    folders: Sequence[Path],
    options: CheckOptions,
    seed_by_name: bool,
    out: Path,
    console: PatientConsole,
    tell: Callable[[GradedWork], None],
) -> list[GradedWork]:
    """Judge each folder, and run what is not run yet. Raises RunError when the table cannot be written."""
    graded: list[GradedWork] = []
    for folder in folders:
        graded.append(_graded(folder, options, seed_by_name, console))
        tell(graded[-1])
        _write(out, graded)
    return graded


def _graded(folder: Path, options: CheckOptions, seed_by_name: bool, console: PatientConsole) -> GradedWork:
    """What a student's files keep from being judged is a reason, not an end of the grading."""
    try:
        work = with_seed_by_name(open_work(folder), seed_by_name)
    except UNREADABLE as error:
        return GradedWork(folder.resolve().name, "", 0, reason=reason_of(error))
    lesson = work.lesson
    try:
        return GradedWork(work.student, lesson.name, lesson.points, check_work(work, options, console))
    except UNREADABLE as error:
        return GradedWork(work.student, lesson.name, lesson.points, reason=reason_of(error))


def _write(out: Path, graded: Sequence[GradedWork]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / CSV_FILE, as_csv(graded))
        write_json(out / JSON_FILE, {"grades": [one.as_dict() for one in graded]})
    except OSError as error:
        raise RunError(f"cannot write {error.filename or out}: {error.strerror}") from error
    give((out / CSV_FILE, out / JSON_FILE))
