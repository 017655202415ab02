"""A student's folder: begun from a lesson, read, and put back. Nothing a student wrote is ever written over."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import ScenarioError, TestbedError, UsageError
from mrc_testbed.testbed.folders import make_own, require_own_way
from mrc_testbed.testbed.inputs import input_text
from mrc_testbed.testbed.lessons.beside import Beside, beside
from mrc_testbed.testbed.lessons.lesson import ANSWERS_FILE, FORMAT, TEXT_FILE, Answers, Lesson, Stage, own_file
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.reading import YamlFile
from mrc_testbed.testbed.lessons.shelf import LESSONS, find_lesson, lesson_folder, shipped_lessons
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario import Scenario, load_scenario
from mrc_testbed.testbed.scenario.load.loader import PLUGINS
from mrc_testbed.testbed.scenario.load.shipped import SUFFIX, with_own_hint
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.text.source import KeyPath, dotted
from mrc_testbed.testbed.whole_files import write_whole

MARKER = "lesson.yaml"
RUNS = "runs"
"""The results folder in a student's folder."""
_SEEDS = 1 << 31


@dataclass(frozen=True)
class Work:
    """A student's folder and its lesson."""

    folder: Path
    lesson: Lesson
    seed_by_name: bool
    place: Path | None = None
    """Where its runs go, if not into the student's folder."""

    @property
    def runs(self) -> Path:
        """The results folder."""
        return self.place or self.folder / RUNS

    @property
    def student(self) -> str:
        """Whose folder it is."""
        return student_of(self.folder, self.lesson.name)

    @property
    def seed(self) -> int | None:
        """The seed of all its runs; None: as the scenarios say."""
        return seed_of(self.student) if self.seed_by_name else None

    @property
    def answers_file(self) -> Path:
        """The file of the answers."""
        return self.folder / ANSWERS_FILE

    def scenario_file(self, run: str) -> Path:
        """The student's file of a run. Raises UsageError where it is gone."""
        return self._there(own_file(run))

    def beside(self, run: str) -> tuple[Beside, ...]:
        """The student's scenario and its cells, beside what they began as. Raises UsageError, ScenarioError."""
        return tuple(beside(self.scenario_file(run), self._starter_file(run)))

    def starter(self, run: str) -> Scenario:
        """What it began as."""
        return load_scenario(self._starter_file(run))

    def _starter_file(self, run: str) -> Path:
        return self.lesson.scenario_file(run, Stage.START)

    def answers(self) -> Answers:
        """All that is answered. Raises UsageError, ScenarioError for a file that cannot be used."""
        asked = {one.name for one in self.lesson.questions if not one.file}
        found = _answers(self._there(ANSWERS_FILE), asked) if asked else {}
        return {**found, **{one.name: self._text(one.file) for one in self.lesson.questions if one.file}}

    def _text(self, name: str) -> str | None:
        """A file of the student's; None as long as it is the starter."""
        try:
            text = input_text(self._there(name))
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.folder / name}: is not UTF-8 text ({error})") from None
        starter = self.lesson.folder / f"{Stage.START}-{name}"
        return None if text.strip() == input_text(starter).strip() else text

    def _there(self, name: str) -> Path:
        path = own_plain(self.folder / name)
        if not path.is_file():
            raise UsageError(f"{path}: is missing; `mrc-testbed lesson restore {self.folder}` puts it back")
        return path


def student_of(folder: Path, lesson: str) -> str:
    """The folder's name; of a folder that is called as the lesson, that of the one above."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == lesson else whole.name


def lesson_named(folder: Path) -> str:
    """Which lesson was started there, by its marker or else by the folder's name; empty if neither says it."""
    with contextlib.suppress(TestbedError, ValueError, OSError):
        return _Marker.read(folder).name
    name = folder.resolve().name
    return name if any(one.name == name for one in shipped_lessons()) else ""


def named_code(path: Path) -> str:
    """Where a scenario names a plugin or programs, which are code that runs as the user who loads it: file, line and
    key;
    else empty. A cell may name one that the file does not. Raises ScenarioError."""
    file = YamlFile.read(path)
    found = [key for key in _keys_with_values(file.source.data) if _is_code(str(key[-1]).split("."))]
    return f"{path}:{file.line_of(found[0])}: {dotted(found[0])}" if found else ""


def _is_code(key: Sequence[str]) -> bool:
    """A key of a document, or one that a cell changes."""
    return key[0] == PLUGINS or Programs.kind in key


def _keys_with_values(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """All of a document, each before those inside of it."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        if value:
            yield (*path, key)
            yield from _keys_with_values(value, (*path, key))


def own_plain(path: Path) -> Path:
    """The same, if it is no link. Raises UsageError: who grades could read, or write, what the student
    could not."""
    if path.is_symlink():
        raise UsageError(f"{path}: is a link; put the file itself there")
    return path


def seed_of(name: str) -> int:
    """A seed drawn from a name: the same on every machine."""
    return int.from_bytes(sha256(name.encode(errors="surrogateescape")).digest()[:8]) % _SEEDS + 1


def _answers(path: Path, asked: Iterable[str]) -> dict[str, Any]:
    file = YamlFile.read(path)
    for name, value in file.source.data.items():
        if name not in set(asked):
            file.complain((name,), "this lesson asks for no such answer", at_key=True)
        elif isinstance(value, dict):
            file.complain((name,), "must be one answer, or a list of them")
    if file.problems:
        raise ScenarioError(file.problems)
    return dict(file.source.data)


def unanswered(work: Work, answers: Answers) -> Iterator[str]:
    """A sentence for each prediction that is not there: file, line and name."""
    if not work.answers_file.is_file():
        return
    file = YamlFile.read(work.answers_file)
    for question in work.lesson.questions:
        if question.predicted and answers.get(question.name) is None:
            yield f"{work.answers_file}:{file.line_of((question.name,))}: {question.name}: write your prediction first"


@dataclass(frozen=True, slots=True)
class _Marker:
    """What lesson.yaml says: which lesson was started, in which version. `place`: of a lesson that is not shipped."""

    name: str
    place: str
    format: int
    version: int
    seed_by_name: bool
    version_line: int

    @staticmethod
    def read(folder: Path) -> _Marker:
        """Raises UsageError for a folder without one, ScenarioError for mistakes in it."""
        path = own_plain(folder / MARKER)
        if not path.is_file():
            raise UsageError(f"{folder}: no lesson was started here; `mrc-testbed lesson start N {folder}` does")
        file = YamlFile.read(path)
        keys = file.top
        found = _Marker(
            keys.text("lesson", "04-three-round-trips", needed=True),
            keys.text("folder", "lessons/mine"),
            keys.whole("format", FORMAT),
            keys.whole("version", 1),
            keys.flag("seed_by_name"),
            file.line_of(("version",)),
        )
        keys.refuse_others()
        if file.problems:
            raise ScenarioError(file.problems)
        return found

    @staticmethod
    def text(lesson: Lesson, seed_by_name: bool) -> str:
        """The content of the file."""
        own = lesson.folder.resolve()
        name = json.dumps(lesson.name, ensure_ascii=False) if own.parent != LESSONS.resolve() else lesson.name
        lines = [f"lesson: {name}", f"format: {FORMAT}", f"version: {lesson.version}"]
        # As JSON, which is YAML whatever a path has in it.
        lines += [] if own.parent == LESSONS.resolve() else [f"folder: {json.dumps(str(own), ensure_ascii=False)}"]
        return "\n".join([*lines, *(["seed_by_name: true"] if seed_by_name else [])]) + "\n"

    def lesson(self, teachers: Mapping[str, Path] | None = None) -> Lesson:
        """As it is now. `teachers`: see `open_work`. Raises UsageError, ScenarioError."""
        if teachers is None:
            return load_lesson(Path(self.place) if self.place else lesson_folder(self.name))
        found = teachers.get(self.name) or next((one for one in shipped_lessons() if one.name == self.name), None)
        if found is None:
            raise UnknownLesson(f"lesson {self.name!r} is not shipped; `--lesson FOLDER` says where it is")
        return load_lesson(found)


class UnknownLesson(UsageError):
    """A student's lesson that the teacher did not name."""


def open_work(folder: Path, teachers: Mapping[str, Path] | None = None) -> Work:
    """The lesson that was started in a folder. `teachers`: folders of lessons that are not shipped, by name; what the
    student's folder says of the place does not count then: it could name another lesson. Raises UsageError for any
    other, and for another version of a lesson."""
    marker = _Marker.read(folder)
    own_plain(folder / RUNS)
    lesson = marker.lesson(teachers)
    if (marker.format, marker.version) != (FORMAT, lesson.version):
        began, now = f"version {marker.version}", f"version {lesson.version}"
        if marker.format != FORMAT:
            began, now = f"format {marker.format}", f"format {FORMAT}"
        place = f"{folder / MARKER}:{marker.version_line}"
        fix = f"`mrc-testbed lesson restore {folder}` begins it again and keeps what is here"
        raise UsageError(f"{place}: was started from {began} of {marker.name}, here is {now}; {fix}")
    return Work(folder, lesson, marker.seed_by_name)


def lesson_meant(name: str) -> Lesson:
    """By number, name or path, or by the folder of a student who began it. Raises UsageError, ScenarioError."""
    return open_work(Path(name)).lesson if is_work(name) else find_lesson(name)


def is_work(name: str) -> bool:
    """Whether a lesson was started in that folder."""
    return (Path(name) / MARKER).is_file()


def start(lesson: Lesson, folder: Path, seed_by_name: bool = False) -> Work:
    """Hand the starter out. Raises UsageError rather than write over anything."""
    names = [*(name for _, name in lesson.handed_out()), MARKER]
    there = [name for name in names if os.path.lexists(folder / name)]
    if there:
        other = f"`mrc-testbed lesson start {lesson.number or lesson.folder} OTHER`"
        again = f"`mrc-testbed lesson restore {folder}`"
        raise UsageError(f"{folder / there[0]}: is there already; start elsewhere with {other}, or again with {again}")
    try:
        make_own(folder)
        for source, name in lesson.handed_out():
            if name == TEXT_FILE:
                write_whole(folder / name, lesson.told)
            elif name.endswith(SUFFIX):
                write_whole(folder / name, with_own_hint(source.read_text(encoding="utf-8")))
            else:
                shutil.copyfile(source, folder / name)
        write_whole(folder / MARKER, _Marker.text(lesson, seed_by_name))
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    give((folder, *(folder / name for name in names)))
    return Work(folder, lesson, seed_by_name)


def restore(folder: Path) -> tuple[Work, Path]:
    """Begin again, and keep what was handed out before in a folder of its own. Raises UsageError, ScenarioError."""
    require_own_way(folder)
    marker = _Marker.read(folder)
    lesson = marker.lesson()
    kept = _new_folder(folder)
    for name in (*(name for _, name in lesson.handed_out()), MARKER):
        if os.path.lexists(folder / name):
            (folder / name).rename(kept / name)
    give((kept, *kept.iterdir()))
    return start(lesson, folder, marker.seed_by_name), kept


def _new_folder(folder: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for number in range(1, 1000):
        path = folder / (f"kept-{stamp}" if number == 1 else f"kept-{stamp}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{path}: cannot be made: {error.strerror}") from None
        return path
    raise UsageError(f"{folder}: too many copies were made in this second")


def with_seed_by_name(work: Work, by_name: bool) -> Work:
    """The same with seeds drawn from the student's name, if asked for."""
    return replace(work, seed_by_name=True) if by_name else work
