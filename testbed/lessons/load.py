"""The folder of a lesson -> `Lesson`, or all its mistakes with file and line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mrc_testbed.testbed.errors import Problem, ScenarioError, UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.expect.reserved import NAME_PATTERN
from mrc_testbed.testbed.inputs import input_text
from mrc_testbed.testbed.lessons.cells import split_cell
from mrc_testbed.testbed.lessons.fitting import unfitting
from mrc_testbed.testbed.lessons.kinds import READERS
from mrc_testbed.testbed.lessons.kinds.numbers import InRange
from mrc_testbed.testbed.lessons.lesson import (
    ANSWERS_FILE,
    FORMAT,
    HINTS_FILE,
    SOLUTION_ANSWERS_FILE,
    TEXT_FILE,
    USUAL_RUN,
    Lesson,
    LessonQuestion,
    Stage,
    Wanted,
)
from mrc_testbed.testbed.lessons.reading import Keys, YamlFile, only_one
from mrc_testbed.testbed.lessons.requirements import Required, read_required
from mrc_testbed.testbed.scenario.load.shipped import CHECK_FILE
from mrc_testbed.testbed.scenario.model.transports import WorldKind

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HINT = re.compile(r"^## ", re.M)
_WORLDS = {world.value: world for world in WorldKind}


def load_lesson(folder: Path) -> Lesson:
    """Raises UsageError for a folder that is no lesson, ScenarioError with all mistakes of one."""
    if not (folder / CHECK_FILE).is_file():
        what = "is no lesson: it has" if folder.is_dir() else "no such folder, and so"
        raise UsageError(f"{folder}: {what} no {CHECK_FILE}; `mrc-testbed lesson new {folder}` makes an empty one")
    check = YamlFile.read(folder / CHECK_FILE)
    _refuse_other_format(check)
    lesson = _read(folder, check)
    problems = [*check.problems, *_other_files(lesson)]
    if not problems and not lesson.sealed:  # it was looked at when the course was made of it
        problems = unfitting(lesson, check)
    if problems:
        raise ScenarioError(sorted(problems, key=lambda one: (one.file, one.line, one.column)))
    return lesson


def _refuse_other_format(check: YamlFile) -> None:
    found = check.top.whole("format", 0)
    if found != FORMAT:
        said = f"is {found}" if found else "is not said"
        check.complain(("format",) if found else (), f"the format {said}; this mrc-testbed reads format {FORMAT}")
        raise ScenarioError(check.problems)


def _read(folder: Path, check: YamlFile) -> Lesson:
    keys = check.top
    keys.has("format")
    runs = _runs(folder, keys)
    lesson = Lesson(
        folder=folder,
        name=folder.resolve().name,
        version=keys.whole("version", 1, 1),
        title=keys.text("title", "Three round trips", needed=True),
        time=keys.text("time", "30 min"),
        goal=keys.text("goal", "what planes are for", needed=True),
        worlds=_worlds(keys),
        runs=runs,
        requires=_requires(keys, runs),
        expect=_expect(keys, runs),
        questions=_questions(keys),
        text=_content(folder / TEXT_FILE),
        hints=_hints(_content(folder / HINTS_FILE)),
        files=_files(keys),
    )
    keys.refuse_others()
    _note_unknown_names(lesson, check)
    if not lesson.points and not check.problems:
        keys.complain("judges nothing: write `answers` or `expect`")
    return lesson


def _runs(folder: Path, keys: Keys) -> tuple[str, ...]:
    if not keys.has("runs"):
        return (USUAL_RUN,) if (folder / f"{Stage.START}.yaml").exists() else ()
    runs = keys.texts("runs", "[before, after]")
    for run in runs:
        if not re.fullmatch(NAME_PATTERN, run):
            keys.complain(f"{run!r} is not a name; use lower-case letters, digits and dashes", "runs")
    return tuple(dict.fromkeys(runs))


def _files(keys: Keys) -> tuple[str, ...]:
    files = keys.texts("files", "[ring.py]")
    for name in files:
        if not _FILE.fullmatch(name) or name.startswith(tuple(Stage)):
            keys.complain(f"{name!r} is not the name of a file here, such as ring.py", "files")
    return tuple(dict.fromkeys(files))


def _worlds(keys: Keys) -> tuple[WorldKind, ...]:
    words = keys.texts("worlds", "[kernel, virtual]") or tuple(_WORLDS)
    for word in words:
        if word not in _WORLDS:
            keys.complain(f"{word!r} is no world; there are {', '.join(_WORLDS)}", "worlds")
    return tuple(world for word, world in _WORLDS.items() if word in words)


def _requires(keys: Keys, runs: Sequence[str]) -> tuple[Required, ...]:
    found = []
    for index, item in enumerate(keys.items("requires")):
        path = ("requires", index)
        if not isinstance(item, dict):
            keys.file.complain(path, "must be a mapping, such as {same: fabric.planes}")
        elif one := read_required(Keys(keys.file, path, item), runs):
            found.append(one)
    return tuple(found)


def _expect(keys: Keys, runs: Sequence[str]) -> tuple[Wanted, ...]:
    items = keys.items("expect")
    if items and not runs:
        keys.complain("a lesson without a run expects nothing of it", "expect")
    return tuple(found for index, item in enumerate(items) if (found := _wanted(keys.file, index, item)))


def _wanted(file: YamlFile, index: int, item: object) -> Wanted | None:
    path = ("expect", index)
    if isinstance(item, str):
        return Wanted(split_cell(item), 1)
    if not isinstance(item, dict):
        file.complain(path, "must be an expectation in words, such as `qp_errors == 0`")
        return None
    keys = Keys(file, path, item)
    found = Wanted(
        split_cell(keys.text("that", '"qp_errors == 0"', needed=True)),
        keys.whole("points", 1, 1),
        keys.text("name", "built"),
        keys.text("says", '"what becomes of one plane"'),
        keys.texts("gives_away", "[one_plane]"),
    )
    if bool(found.says) != bool(found.gives_away):
        keys.complain("`says` and `gives_away` go together: what is told until these answers are right")
    keys.refuse_others()
    return found


def _questions(keys: Keys) -> tuple[LessonQuestion, ...]:
    answers = keys.below("answers", '{left: {value: "{goodput during port} / {goodput clean}"}}')
    if answers is None:
        return ()
    return tuple(found for name in answers.data if (found := _question(answers, name)))


def _note_unknown_names(lesson: Lesson, check: YamlFile) -> None:
    """Of expectations and questions that each other name."""
    named, asked = [one.name for one in lesson.expect if one.name], [one.name for one in lesson.questions]
    for index, wanted in enumerate(lesson.expect):
        for name in wanted.gives_away:
            if name not in asked:
                check.complain(
                    ("expect", index, "gives_away"), f"there is no answer {name!r}{did_you_mean(name, asked)}"
                )
    for question in lesson.questions:
        if question.once and question.once not in named:
            known = did_you_mean(question.once, named) or f"; there are {', '.join(named) or 'none'}"
            check.complain(("answers", question.name, "once"), f"no expectation is named {question.once!r}{known}")


def _question(answers: Keys, name: str) -> LessonQuestion | None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        answers.complain("an answer is named in lower-case letters, digits and _, such as left_2", name, at_key=True)
    keys = answers.below(name, "{between: [2, 5]}")
    if keys is None:
        return None
    word = only_one(keys, tuple(READERS), "answer")
    kind = READERS[word](keys) if word else InRange(0, 0, "")
    found = LessonQuestion(
        name,
        keys.text("ask", '"How many?"'),
        kind,
        keys.whole("points", 1, 1),
        keys.flag("predict"),
        keys.text("once", "built"),
    )
    if word:
        keys.refuse_others()
    return found


def _content(path: Path) -> str:
    try:
        return input_text(path)
    except (OSError, ValueError):
        return ""


def _hints(text: str) -> tuple[str, ...]:
    return tuple(f"## {part.strip()}" for part in _HINT.split(text)[1:])


def _other_files(lesson: Lesson) -> list[Problem]:
    """Files that are missing, and answers that do not fit the questions."""
    problems = [_absent(path) for path, _ in lesson.handed_out() if not path.is_file()]
    if not lesson.sealed:
        problems += [_absent(lesson.folder / f"{Stage.SOLUTION}-{name}") for name in lesson.texts]
    problems = [one for one in problems if not Path(one.file).is_file()]
    if lesson.text and not lesson.text.startswith(f"# {lesson.title}\n"):
        problems.append(
            _at(lesson.folder / TEXT_FILE, f"must begin with `# {lesson.title}`, the title in {CHECK_FILE}")
        )
    if not lesson.hints:
        problems.append(_at(lesson.folder / HINTS_FILE, "has no hint: write `## ` before each"))
    asked = {one.name: None for one in lesson.questions if not one.file}
    if asked:
        problems += _misnamed(lesson.folder / ANSWERS_FILE, asked, whole=True)
        problems += [] if lesson.sealed else _misnamed(lesson.folder / SOLUTION_ANSWERS_FILE, asked, whole=False)
    return problems


def _misnamed(path: Path, asked: Mapping[str, None], whole: bool) -> list[Problem]:
    """Answers in a file that nobody asks for, and (`whole`) questions that it lacks or already answers."""
    if not path.is_file():
        return [_absent(path)]
    try:
        file = YamlFile.read(path)
    except ScenarioError as error:
        return list(error.problems)
    for name in file.source.data:
        if name not in asked:
            file.complain((name,), f"{CHECK_FILE} has no such answer", at_key=True)
        elif whole and file.source.data[name] is not None:
            file.complain((name,), "must be empty: students fill it in")
    for name in asked if whole else ():
        if name not in file.source.data:
            file.complain((), f"lacks `{name}:`")
    return file.problems


def _absent(path: Path) -> Problem:
    return _at(path, "is missing")


def _at(path: Path, message: str) -> Problem:
    return Problem(str(path), 1, 1, path.name, message)
