"""The solution of a lesson as text, and as the folder of a student who solved it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from mrc_testbed.testbed.inputs import input_text
from mrc_testbed.testbed.lessons.evidence import Evidence, NotKnown, NotThere
from mrc_testbed.testbed.lessons.kinds import AnswerKind
from mrc_testbed.testbed.lessons.kinds.numbers import Value
from mrc_testbed.testbed.lessons.lesson import ANSWERS_FILE, SOLUTION_ANSWERS_FILE, Answers, Lesson, Stage, own_file
from mrc_testbed.testbed.lessons.reading import YamlFile

FROM_THE_RUN = "# what your run has"
_WIDTH = 80


def solution_answers(lesson: Lesson) -> Answers:
    """As written; those that each run draws are absent."""
    path = lesson.folder / SOLUTION_ANSWERS_FILE
    written = YamlFile.read(path).source.data if path.is_file() else {}
    found = {name: value for name, value in written.items() if value is not None}
    for question in lesson.questions:
        if question.file:
            found[question.name] = input_text(lesson.folder / f"{Stage.SOLUTION}-{question.file}")
    return found


def solution_lines(lesson: Lesson, answers: Answers | None = None) -> Iterator[str]:
    """Each file of it under a line with its name. `answers`: where given, in place of the solution's own."""
    for run in lesson.runs:
        path = lesson.scenario_file(run, Stage.SOLUTION)
        if path == lesson.scenario_file(run, Stage.START):
            yield f"# {own_file(run)}: as it was handed out"
        else:
            yield f"# {own_file(run)}"
            yield input_text(path).rstrip()
        yield ""
    for name in lesson.files:
        solved = lesson.solved_file(name)
        yield f"# {name}" if solved else f"# {name}: as it was handed out"
        yield from (input_text(solved).rstrip(), "") if solved else ("",)
    found = solution_answers(lesson) if answers is None else answers
    for question in lesson.questions:
        if question.file:
            yield f"# {question.file}"
            yield str(found[question.name]).rstrip()
            yield ""
    yield f"# {ANSWERS_FILE}"
    for question in lesson.questions:
        if not question.file:
            yield _written(question.name, found.get(question.name))


def _written(name: str, given: Any) -> str:
    """As YAML, which has quotes where a text would be read as something else."""
    if given is None:
        return f"{name}: {FROM_THE_RUN}"
    yaml = YAML()
    yaml.width, yaml.default_flow_style = _WIDTH, False
    out = StringIO()
    yaml.dump({name: given}, out)
    return out.getvalue().rstrip()


def write_solution(lesson: Lesson, folder: Path) -> None:
    """Put the solution over what was handed out; answers that the run draws stay empty."""
    for run in lesson.runs:
        shutil.copyfile(lesson.scenario_file(run, Stage.SOLUTION), folder / own_file(run))
    for name in lesson.files:
        shutil.copyfile(lesson.solved_file(name) or lesson.folder / name, folder / name)
    for name in lesson.texts:
        shutil.copyfile(lesson.folder / f"{Stage.SOLUTION}-{name}", folder / name)
    if (lesson.folder / SOLUTION_ANSWERS_FILE).is_file():
        shutil.copyfile(lesson.folder / SOLUTION_ANSWERS_FILE, folder / ANSWERS_FILE)


def own_answers(lesson: Lesson, answers: Answers, evidence: Evidence) -> dict[str, Any]:
    """The answers, and where there is none the one that the run itself gives."""
    found = dict(answers)
    for question in lesson.questions:
        if found.get(question.name) is None:
            try:
                found[question.name] = _short(question.kind, question.kind.own(evidence))
            except (LookupError, NotKnown, NotThere):
                continue
    return found


def _short(kind: AnswerKind, own: Any) -> Any:
    """A number in four digits, where that is near enough."""
    if not isinstance(kind, Value):
        return own
    short = float(f"{own:.4g}")
    return short if kind.tolerance.accepts(short, own) else own
