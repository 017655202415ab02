"""A lesson in a browser: the page asks, and this process saves answers, makes runs and judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from mrc_testbed.testbed.app.lesson import UNREADABLE, CheckOptions, check_work, reason_of
from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.inputs import input_text
from mrc_testbed.testbed.lessons.kinds import FreeText
from mrc_testbed.testbed.lessons.lesson import ANSWERS_FILE, Answers, LessonQuestion
from mrc_testbed.testbed.lessons.work import Work
from mrc_testbed.testbed.pages.live.lesson import grade_content, lesson_content, refusal_content, shown_answer
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario.text.yaml_text import parse_value
from mrc_testbed.testbed.web.sse_state import GRADE, LESSON
from mrc_testbed.testbed.whole_files import write_whole

if TYPE_CHECKING:  # it needs sockets that other systems do not have
    from mrc_testbed.testbed.web.server_process import ServerProcess

_ANSWER, _WAS = "answer.", "was."
"""Before the names of answers in a request, which is flat: those that were changed, and what they were."""


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
    try:
        save_answers(work, _named(request, _ANSWER), _named(request, _WAS))
    except UNREADABLE as error:
        answer(False, reason_of(error))
        _show(work, server, options)
        return
    if request.get("do") != "check":
        answer(True, "saved")
        _show(work, server, options)
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


def _named(request: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in request.items() if name.startswith(prefix)}


def save_answers(work: Work, given: Mapping[str, Any], was: Mapping[str, Any]) -> None:
    """Write answers into the student's file, and leave its comments. `was`: what the page had of them before; where the
    file has another answer by now nothing is written. Raises UsageError, ScenarioError."""
    asked = {one.name: one for one in work.lesson.questions if not one.file}
    if not asked:
        return
    work.answers()  # a file with mistakes is not written over
    yaml = YAML()
    document = yaml.load(input_text(work.answers_file))
    for name, value in given.items():
        there = shown_answer(document.get(name))
        if name in asked and isinstance(value, str) and value != there:
            if there != was.get(name, there):
                raise UsageError(f"{name} is {there!r} in {ANSWERS_FILE} by now; save again to write over it")
            document[name] = _typed(value, asked[name])
    out = StringIO()
    yaml.dump(document, out)
    try:
        write_whole(work.answers_file, out.getvalue())
    except OSError as error:
        raise UsageError(f"{work.answers_file}: cannot be written: {error.strerror}") from None
    give((work.answers_file,))


def _typed(text: str, question: LessonQuestion) -> Any:
    """A number where it is one and a number may be meant, else the text; nothing where it is empty."""
    if not text or isinstance(question.kind, FreeText):
        return text or None
    try:
        found = parse_value(text)
    except ScenarioError:
        return text
    return found if isinstance(found, int | float) and not isinstance(found, bool) else text
