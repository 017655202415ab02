"""A course for a class: lessons without their solutions. These are in one file, the teacher's key, until it is handed
out. What this protects from, and what not, is in docs/teaching.md."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.lessons.lesson import COURSE_FILE, Lesson, Stage
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.reading import YamlFile
from mrc_testbed.testbed.rundir.files import read_json, write_json
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.state import state_paths
from mrc_testbed.testbed.whole_files import write_whole

FORMAT = 1
_JOINED = "courses.json"
_KEY_SUFFIX = "-key.json"


@dataclass(frozen=True, slots=True)
class Course:
    """What course.yaml says. `key`: SHA-256 of the key file, in hex."""

    folder: Path
    name: str
    key: str

    @staticmethod
    def read(folder: Path) -> Course:
        """Raises ScenarioError with all mistakes of the file."""
        file = YamlFile.read(folder / COURSE_FILE)
        keys = file.top
        if (found := keys.whole("format", FORMAT)) != FORMAT:
            keys.complain(f"the format is {found}; this mrc-testbed reads format {FORMAT}", "format")
        course = Course(folder, keys.text("course", "term-1", needed=True), keys.text("key", "a hash", needed=True))
        keys.refuse_others()
        if file.problems:
            raise ScenarioError(file.problems)
        return course


def make_course(folder: Path, lessons: Sequence[Lesson]) -> tuple[Path, Path]:
    """The folder for students, and the key beside it. Raises UsageError rather than write over anything."""
    key = folder.with_name(folder.name + _KEY_SUFFIX)
    for path in (folder, key):
        if path.exists():
            raise UsageError(f"{path}: is there already; name a new folder")
    if sealed := next((one.folder for one in lessons if one.sealed), None):
        raise UsageError(
            f"{sealed}: is of a course already, and has no solution; name the lesson that it was made from"
        )
    name = folder.resolve().name
    solutions = {one.name: _solution_texts(one) for one in lessons}
    text = json.dumps({"course": name, "lessons": solutions}, ensure_ascii=False, indent=1)
    marker = (
        f"format: {FORMAT}\ncourse: {json.dumps(name, ensure_ascii=False)}\nkey: {sha256(text.encode()).hexdigest()}\n"
    )
    try:
        for one in lessons:
            shutil.copytree(one.folder, folder / one.name, ignore=shutil.ignore_patterns(f"{Stage.SOLUTION}*"))
        write_whole(folder / COURSE_FILE, marker)
        write_whole(key, text)
        key.chmod(0o600)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    give((folder, *folder.rglob("*"), key))
    return folder, key


def _solution_texts(lesson: Lesson) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(lesson.folder.glob(f"{Stage.SOLUTION}*"))}


def join(lesson: Lesson) -> None:
    """Note for this user of this machine that the lessons of its course are sealed, also where they are shipped. Where
    that cannot be written it is not noted: the solutions are no secret of this machine's."""
    course = Course.read(lesson.folder.parent)
    names = [path.parent.name for path in course.folder.glob("*/check.yaml")]
    _keep({**_joined(), **{name: {"course": course.name, "key": course.key} for name in names}})


def _joined() -> dict[str, Any]:
    """By name of the lesson, the course that it is part of."""
    found = next((known for path in state_paths(_JOINED) if (known := read_json(path))), None)
    return {name: one for name, one in (found or {}).items() if isinstance(one, dict) and {"course", "key"} <= set(one)}


def _keep(joined: dict[str, Any]) -> None:
    for path in state_paths(_JOINED):
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, joined)
            give((path.parent, path))
            return


@contextlib.contextmanager
def opened(lesson: Lesson, key: Path | None) -> Iterator[Lesson]:
    """The lesson with its solution, if that may be seen: it is of no course, or the key is that of its course. Raises
    UsageError."""
    sealed = _seal_of(lesson)
    if key is None:
        if sealed:
            raise UsageError(
                f"lesson {lesson.name} is part of the course {sealed[0]}: its solution needs the key that the teacher "
                "hands out after the deadline: `lesson solution ... --key FILE`"
            )
        yield lesson
        return
    if not sealed:
        raise UsageError(f"--key: lesson {lesson.name} is of no course here; leave it out")
    solutions = _solutions(key, sealed)
    if not lesson.sealed:
        _keep({name: one for name, one in _joined().items() if one["key"] != sealed[1]})
        yield lesson
        return
    with tempfile.TemporaryDirectory() as place:
        whole = Path(shutil.copytree(lesson.folder, Path(place) / lesson.name))
        for name, text in solutions.get(lesson.name, {}).items():
            (whole / Path(name).name).write_text(text, encoding="utf-8")
        yield load_lesson(whole)


def _seal_of(lesson: Lesson) -> tuple[str, str] | None:
    """Name and key of the course that a lesson is part of, for this user; None: of none."""
    if lesson.sealed:
        course = Course.read(lesson.folder.parent)
        return course.name, course.key
    one = _joined().get(lesson.name)
    return (str(one["course"]), str(one["key"])) if one and lesson.shipped else None


def _solutions(key: Path, sealed: tuple[str, str]) -> Mapping[str, Mapping[str, str]]:
    """What a key file holds. Raises UsageError for a file that is not the key of that course."""
    try:
        content = key.read_bytes()
    except OSError as error:
        raise UsageError(f"{key}: cannot be read: {error.strerror}") from None
    if sha256(content).hexdigest() != sealed[1]:
        raise UsageError(f"{key}: is not the key of the course {sealed[0]}; ask your teacher")
    found: Mapping[str, Mapping[str, str]] = json.loads(content)["lessons"]
    return found
