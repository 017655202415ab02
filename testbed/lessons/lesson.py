"""A lesson as loaded: what is told, what is handed out, and what is judged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.lessons.cells import InCell
from mrc_testbed.testbed.lessons.kinds import AnswerKind, FreeText
from mrc_testbed.testbed.lessons.requirements import Required
from mrc_testbed.testbed.scenario.load.shipped import FOLDER
from mrc_testbed.testbed.scenario.model.transports import WorldKind

TEXT_FILE = "lesson.md"
HINTS_FILE = "hints.md"
ANSWERS_FILE = "answers.yaml"
COURSE_FILE = "course.yaml"
"""In the folder of a course, beside the folders of its lessons."""
SOLUTION_ANSWERS_FILE = "solution-answers.yaml"
USUAL_RUN = "scenario"
FORMAT = 1
"""Of lessons, that this version reads."""
PASSES = "passes"
"""In place of an expectation: the student's own hold."""


class Stage(StrEnum):
    """What a scenario file of a lesson is."""

    START = "start"
    SOLUTION = "solution"


@dataclass(frozen=True, slots=True)
class LessonQuestion:
    """One answer that is asked for. `predicted`: before the run. `once`: it is judged when the expectation of this name
    holds; empty: at once."""

    name: str
    ask: str
    kind: AnswerKind
    points: int
    predicted: bool
    once: str = ""

    @property
    def file(self) -> str:
        """The file that the answer is; empty where it is in answers.yaml."""
        return self.kind.file if isinstance(self.kind, FreeText) else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An expectation about the student's runs. `name`: by which questions wait for it. `gives_away`: questions whose
    answers can be read off it; until they are right students are told `says` in its place."""

    that: InCell
    points: int
    name: str = ""
    says: str = ""
    gives_away: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """`name`: of its folder, such as `02-eight-small-ports`. `hints`: the first tells least."""

    folder: Path
    name: str
    version: int
    title: str
    time: str
    goal: str
    worlds: tuple[WorldKind, ...]
    runs: tuple[str, ...]
    requires: tuple[Required, ...]
    expect: tuple[Wanted, ...]
    questions: tuple[LessonQuestion, ...]
    text: str
    hints: tuple[str, ...]
    files: tuple[str, ...] = ()
    """What programs in its scenarios consist of."""

    @property
    def number(self) -> str:
        """`2`; empty for a name without one."""
        digits = self.name.partition("-")[0]
        return str(int(digits)) if digits.isdecimal() else ""

    @property
    def sealed(self) -> bool:
        """Whether it is part of a course, and so has no solution."""
        return (self.folder.resolve().parent / COURSE_FILE).is_file()

    @property
    def shipped(self) -> bool:
        """Whether it is one of ours."""
        return self.folder.resolve().parent == (FOLDER / "lessons").resolve()

    @property
    def points(self) -> int:
        """Of all its parts."""
        return sum(one.points for one in self.expect) + sum(one.points for one in self.questions)

    @property
    def told(self) -> str:
        """The text as it is read elsewhere than in its folder: a link to a file that students have not is its words and
        the path in the project, such as `docs/protocol.md`."""
        there = frozenset(name for _, name in self.handed_out())
        return _LINK.sub(lambda link: _told(link, self.folder, there), self.text)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the files that students write."""
        return tuple(one.file for one in self.questions if one.file)

    def scenario_file(self, run: str, stage: Stage) -> Path:
        """The starter or the solution of a run. Where nothing has to be changed there is no solution: the starter."""
        suffix = "" if run == USUAL_RUN else f"-{run}"
        path = self.folder / f"{stage}{suffix}.yaml"
        return path if stage is Stage.START or path.is_file() else self.scenario_file(run, Stage.START)

    def solved_file(self, name: str) -> Path | None:
        """The solution of one of `files`; None where it stays as it was handed out."""
        path = self.folder / f"{Stage.SOLUTION}-{name}"
        return path if path.is_file() else None

    def handed_out(self) -> Iterator[tuple[Path, str]]:
        """Each file of the starter, and what the student has it as."""
        yield self.folder / TEXT_FILE, TEXT_FILE
        for run in self.runs:
            yield self.scenario_file(run, Stage.START), own_file(run)
        yield from ((self.folder / name, name) for name in self.files)
        if any(not one.file for one in self.questions):
            yield self.folder / ANSWERS_FILE, ANSWERS_FILE
        for name in self.texts:
            yield self.folder / f"{Stage.START}-{name}", name


_LINK = re.compile(r"(`[^`\n]+`|^```.*?^```)|\[([^\]]+)\]\(([^)\s]+)\)", re.M | re.S)
"""Code, where nothing is a link, or a link."""


def _told(link: re.Match[str], folder: Path, there: frozenset[str]) -> str:
    code, words, target = link.groups()
    file, sign, heading = (target or "").partition("#")
    if code or "://" in target or not file or file in there:
        return link[0]
    path = os.path.relpath(os.path.normpath(folder.resolve() / file), FOLDER.parent)
    return f"{words} (`{file if path.startswith('..') else path}{sign}{heading}`)"


def own_file(run: str) -> str:
    """The student's file of a run: `scenario.yaml`."""
    return f"{run}.yaml"


Answers = Mapping[str, Any]
"""What a student wrote, by the name of the question; absent or None: nothing yet."""
