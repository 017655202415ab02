"""The lessons of a class, graded one after the other; the table is whole at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mrc_testbed.testbed.app.lesson import UNREADABLE, CheckOptions, WrongWorld, check_work, reason_of
from mrc_testbed.testbed.errors import MissingCapability, RunError, UsageError
from mrc_testbed.testbed.folders import make_own, require_own_way
from mrc_testbed.testbed.inputs import files_of_others
from mrc_testbed.testbed.lessons.grade import LessonMark
from mrc_testbed.testbed.lessons.grades import GradedWork, as_csv, students_of
from mrc_testbed.testbed.lessons.work import (
    RUNS,
    UnknownLesson,
    Work,
    lesson_named,
    named_code,
    open_work,
    student_of,
    with_seed_by_name,
)
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.files import write_json
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.rundir.results import missing_folders
from mrc_testbed.testbed.whole_files import write_whole

CSV_FILE, JSON_FILE = "grades.csv", "grades.json"
_NOT_THEIRS = (MissingCapability, RunError, WrongWorld, UnknownLesson)
"""What a student can do nothing about: this machine, or how the grading was called."""


def grade_all(
    folders: Sequence[Path],
    teachers: Mapping[str, Path],
    options: CheckOptions,
    seed_by_name: bool,
    out: Path,
    console: PatientConsole,
    tell: Callable[[GradedWork], None],
) -> list[GradedWork]:
    """Judge each folder, and run what is not run yet. `teachers`: lessons that are not shipped, by name. Raises
    UsageError where `out` is no folder, RunError when the table cannot be written."""
    missing_folders(out)
    names = students_of({folder: lesson_named(folder) for folder in folders})
    rows = [_not_graded_yet(folder, names[folder]) for folder in folders]
    _write(out, rows)  # a table of an earlier call would tell of that one if this call is killed
    for index, folder in enumerate(folders):
        with files_of_others(folder) as held:
            graded = _graded(held, teachers, options, seed_by_name, out, console)
        rows[index] = replace(graded, student=names[folder])
        tell(rows[index])
        _write(out, rows)
    return rows


def _not_graded_yet(folder: Path, student: str) -> GradedWork:
    """What the table says of a student before the own row is there, also when the grading is killed."""
    return GradedWork(student, lesson_named(folder), 0, reason="not graded yet", mark=LessonMark.INCONCLUSIVE)


def _graded(
    folder: Path,
    teachers: Mapping[str, Path],
    options: CheckOptions,
    seed_by_name: bool,
    out: Path,
    console: PatientConsole,
) -> GradedWork:
    """What a student's files keep from being judged is a reason, not an end of the grading."""
    try:
        work = _with_own_place(with_seed_by_name(open_work(folder, teachers), seed_by_name), out)
    except UNREADABLE as error:
        name = lesson_named(folder)
        return _not_judged(student_of(folder, name), name, 0, error)
    lesson = work.lesson
    try:
        _refuse_code(work)
        return GradedWork(work.student, lesson.name, lesson.points, check_work(work, options, console))
    except UNREADABLE as error:
        return _not_judged(work.student, lesson.name, lesson.points, error)


def _with_own_place(work: Work, out: Path) -> Work:
    """Runs go into the student's folder as long as nobody else could lead them elsewhere; else beside the table."""
    own = Path(str(work.folder), RUNS)
    try:
        require_own_way(own)
    except UsageError:
        own = out / RUNS / f"{work.student}-{work.lesson.name}"
    return replace(work, place=own)


def _not_judged(student: str, lesson: str, of: int, error: Exception) -> GradedWork:
    if isinstance(error, _NOT_THEIRS):
        return GradedWork(student, lesson, 0, reason=reason_of(error), mark=LessonMark.INCONCLUSIVE)
    return GradedWork(student, lesson, of, reason=reason_of(error))


def _refuse_code(work: Work) -> None:
    """Refuses plugins in the scenarios of students. Raises UsageError."""
    for run in work.lesson.runs:
        if place := named_code(work.scenario_file(run)):
            raise UsageError(f"{place}: grading runs no student's code; read it, then use `lesson check`")


def _write(out: Path, graded: Sequence[GradedWork]) -> None:
    try:
        make_own(out)
        write_whole(out / CSV_FILE, as_csv(graded))
        write_json(out / JSON_FILE, {"grades": [one.as_dict() for one in graded]})
    except OSError as error:
        raise RunError(f"cannot write {error.filename or out}: {error.strerror}") from error
    give((out / CSV_FILE, out / JSON_FILE))
