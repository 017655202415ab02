"""A program that observes a case: its lines are answered until it ends, or its time is over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.checks.answers import read_answer
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.incidents.answering import (
    ANSWERS,
    MOST_ANSWER_BYTES,
    answer_file,
    free_name,
    keep_answers,
    names_in_fabric,
)
from mrc_testbed.testbed.incidents.case import CaseFolder
from mrc_testbed.testbed.incidents.kinds import WHAT
from mrc_testbed.testbed.incidents.observer import Observer
from mrc_testbed.testbed.incidents.protocol import (
    MOST_LINE_BYTES,
    BadRequest,
    Conversation,
    LookBudget,
    as_line,
)
from mrc_testbed.testbed.launcher.line_program import LineProgram
from mrc_testbed.testbed.rundir.files import any_values, refuse_links, write_failed
from mrc_testbed.testbed.rundir.ownership import write_given
from mrc_testbed.testbed.state import sudo_caller

_END_S = 2.0
"""What a program has to end by itself after its last line."""


@dataclass(frozen=True, slots=True)
class ProgramCalled:
    """What is started: `command`, by the user and group `owner` (None: by who calls), for at most `timeout_s` of
    people's time."""

    command: Sequence[str]
    timeout_s: float
    owner: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ServedCase:
    """What came of a conversation. `status`: that of the program; `answers`: how many it gave."""

    status: int
    answers: int
    looks: int
    told_bytes: int


class AnswerSheet:
    """Takes the answers of one program, each at its time. `lines`: what it said so far, for the file."""

    def __init__(self, case: CaseFolder) -> None:
        """Raises UsageError before the case was observed."""
        self._places = names_in_fabric(case)
        self._last_s = -1.0
        self._bytes = 0
        self.lines: list[str] = []

    def take(self, answer: Mapping[str, Any], t_s: float) -> None:
        """Raises BadRequest for what is no answer, a second one at the same time, and too many."""
        if "t_s" in answer:
            raise BadRequest("answer: leave t_s out; an answer has the time at which it is given")
        if t_s <= self._last_s:
            raise BadRequest(f"answer: there is one for {t_s:g} s already; `wait` first")
        line = as_line({"t_s": t_s, **answer})
        _, wrong = read_answer(line, self._places, WHAT)
        if wrong:
            raise BadRequest("; ".join(f"answer: {path}: {text}" for _, path, text in wrong))
        self._bytes += len(line.encode()) + 1
        if self._bytes > MOST_ANSWER_BYTES:
            raise BadRequest(f"answer: all answers together have at most {MOST_ANSWER_BYTES} bytes")
        self._last_s = t_s
        self.lines.append(line)


def serve(case: CaseFolder, name: str, program: ProgramCalled, budget: LookBudget) -> ServedCase:
    """Let a program observe a case, and keep its answers and a log of what it asked; also where it was ended. Raises
    UsageError for a name that has answered, and what cannot be started; RunError for what does not end."""
    free_name(case, name)
    with any_values(case.folder):
        sheet = AnswerSheet(case)
        conversation = Conversation(Observer(case), sheet.take, budget)
    try:
        status = converse(program, conversation)
    finally:
        _keep(case, name, sheet, conversation)
    return ServedCase(status, len(sheet.lines), conversation.looks, conversation.told_bytes)


def _keep(case: CaseFolder, name: str, sheet: AnswerSheet, conversation: Conversation) -> None:
    if sheet.lines:
        keep_answers(case, name, name, sheet.lines)
    if conversation.log:
        path = answer_file(case, name).with_suffix(".observer.jsonl")
        refuse_links(case.folder, ANSWERS, path.name)
        try:
            write_given(path, "".join(f"{as_line(line)}\n" for line in conversation.log))
        except OSError as error:
            raise write_failed(path, error) from error


def user_called(name: str | None) -> tuple[int, int] | None:
    """Numbers of the user and group by whom a program is run: a named user, else who called sudo; None: as this
    process. Raises UsageError."""
    if name is None:
        return sudo_caller()
    import pwd  # not everywhere

    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"--as {name}: there is no such user") from None
    if os.geteuid() not in (0, found.pw_uid):
        raise UsageError(f"--as {name}: only root can run a program as somebody else; leave it out")
    return (found.pw_uid, found.pw_gid) if found.pw_uid != os.geteuid() else None


def converse(called: ProgramCalled, conversation: Conversation) -> int:
    """Answer its lines. Returns its exit status, or -N where signal N ended it. Raises UsageError where it cannot be
    started, RunError where its time is over; then it is ended."""
    name, deadline_s = called.command[0], time.monotonic() + called.timeout_s
    try:
        program = LineProgram(called.command, called.owner)
    except OSError as error:
        raise UsageError(f"{name}: cannot be started: {error.strerror}") from None
    try:
        with suppress(BrokenPipeError):
            for line in _lines(program, deadline_s):
                program.say(conversation.reply(line), deadline_s)
    except TimeoutError:
        raise RunError(f"{name}: its time of {called.timeout_s:g} s is over; --timeout gives more") from None
    else:
        return _status(program, name)
    finally:
        program.end()


def _lines(program: LineProgram, deadline_s: float) -> Iterator[str]:
    """What it says, line by line; none after one that is too long. Raises TimeoutError."""
    line = b"\n"
    while line.endswith(b"\n"):
        line = program.hear(deadline_s, MOST_LINE_BYTES)
        if line.strip():
            yield line.decode(errors="replace").removesuffix("\n")


def _status(program: LineProgram, name: str) -> int:
    try:
        return program.wait(_END_S)
    except TimeoutError:
        raise RunError(f"{name}: went on {_END_S:g} s after its last line, and was ended") from None
