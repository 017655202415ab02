"""A lesson in a browser: the page asks, and this process saves answers, makes runs and judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from testbed.app.lesson import UNREADABLE, CheckOptions, check_work, reason_of
from testbed.errors import ScenarioError, UsageError
from testbed.lessons.lesson import Answers
from testbed.lessons.work import Work
from testbed.pages.live.lesson import grade_content, lesson_content, refusal_content
from testbed.report.console import PatientConsole
from testbed.rundir.files import write_whole
from testbed.rundir.ownership import give
from testbed.scenario.yaml_text import parse_value
from testbed.web.sse_state import GRADE, LESSON

if TYPE_CHECKING:  # it needs sockets that other systems do not have
    from testbed.web.server_process import ServerProcess

_ANSWER = "answer."
"""Before the names of answers in a request, which is flat."""


def serve_lesson(work: Work, server: ServerProcess, options: CheckOptions, console: PatientConsole) -> None:
    """Show the lesson, and do what the page asks for until the server ends."""
    _show(work, server, options)
    for request, answer in server.requests():
        virtual = request.get("virtual") is True
        _do(work, server, replace(options, virtual=virtual, audience=server), console, request, answer)


def _show(work: Work, server: ServerProcess, options: CheckOptions) -> None:
    plan = work.starter(work.lesson.runs[0]).plan() if work.lesson.runs else None
    server.tell(LESSON, lesson_content(work.lesson, work.folder, _readable(work), options.virtual, plan))


def _readable(work: Work) -> Answers:
    """None of a file with a mistake: the check tells it."""
    try:
        return work.answers()
    except UNREADABLE:
        return {}


def _do(
    work: Work,
    server: ServerProcess,
    options: CheckOptions,
    console: PatientConsole,
    request: Mapping[str, Any],
    answer: Callable[[bool, str], None],
) -> None:
    given = {name.removeprefix(_ANSWER): value for name, value in request.items() if name.startswith(_ANSWER)}
    try:
        save_answers(work, given)
    except UNREADABLE as error:
        answer(False, reason_of(error))
        return
    if request.get("do") != "check":
        answer(True, "saved")
        return
    answer(True, "the check goes on")
    try:
        content = grade_content(check_work(work, options, console))
    except ScenarioError as error:
        content = refusal_content(list(map(str, error.problems)))
    except UNREADABLE as error:
        content = refusal_content([reason_of(error)])
    _show(work, server, options)
    server.tell(GRADE, content)


def save_answers(work: Work, given: Mapping[str, Any]) -> None:
    """Write answers into the student's file, and leave its comments. Raises UsageError, ScenarioError."""
    asked = {one.name for one in work.lesson.questions if not one.file}
    if not asked:
        return
    work.answers()  # a file with mistakes is not written over
    yaml = YAML()
    document = yaml.load(work.answers_file.read_text(encoding="utf-8"))
    for name, value in given.items():
        if name in asked and isinstance(value, str) and value != _shown(document.get(name)):
            document[name] = _typed(value)
    out = StringIO()
    yaml.dump(document, out)
    try:
        write_whole(work.answers_file, out.getvalue())
    except OSError as error:
        raise UsageError(f"{work.answers_file}: cannot be written: {error.strerror}") from None
    give((work.answers_file,))


def _shown(value: Any) -> str:
    """As the page has it."""
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _typed(text: str) -> Any:
    """A number where it is one, else the text; nothing where it is empty."""
    try:
        found = parse_value(text)
    except ScenarioError:
        return text
    return text if isinstance(found, dict | list | bool) else found
