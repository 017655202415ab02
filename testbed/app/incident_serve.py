"""A program that observes a case: its lines are answered until it ends, or its time is over."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from mrc_testbed.testbed.rundir.files import refuse_links, write_failed
from mrc_testbed.testbed.rundir.ownership import write_given

_CHUNK = 1 << 16
_END_S = 2.0
"""What a program has to end by itself after its last line."""


@dataclass(frozen=True, slots=True)
class ProgramCalled:
    """What is started: `command`, by the user `uid` (None: by who calls), for at most `timeout_s` of people's time."""

    command: Sequence[str]
    timeout_s: float
    uid: int | None = None
    gid: int | None = None


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


def user_called(name: str | None) -> tuple[int, int] | tuple[None, None]:
    """The numbers of the user by whom a program is run: a named one, else who called sudo. Raises UsageError."""
    if name is None:
        numbers = [os.environ.get(key, "") for key in ("SUDO_UID", "SUDO_GID")]
        sudo = os.geteuid() == 0 and all(number.isdigit() for number in numbers)
        return (int(numbers[0]), int(numbers[1])) if sudo else (None, None)
    import pwd  # not everywhere

    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"--as {name}: there is no such user") from None
    if os.geteuid() not in (0, found.pw_uid):
        raise UsageError(f"--as {name}: only root can run a program as somebody else; leave it out")
    return (found.pw_uid, found.pw_gid) if found.pw_uid != os.geteuid() else (None, None)


def converse(program: ProgramCalled, conversation: Conversation) -> int:
    """Answer its lines. Returns its exit status, or -N where signal N ended it. Raises UsageError where it cannot be
    started, RunError where its time is over; then it is ended."""
    deadline_s = time.monotonic() + program.timeout_s
    with _started(program) as process:
        assert process.stdin is not None
        for line in _lines(process, deadline_s, program):
            try:
                process.stdin.write(conversation.reply(line).encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                break
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            return process.wait(_END_S)
        except subprocess.TimeoutExpired:
            raise RunError(f"{program.command[0]}: went on {_END_S:g} s after its last line, and was ended") from None


@contextmanager
def _started(program: ProgramCalled) -> Iterator[subprocess.Popen[bytes]]:
    """Its process, which is gone afterwards, with all that it has started."""
    rights: dict[str, Any] = (
        {} if program.uid is None else {"user": program.uid, "group": program.gid, "extra_groups": []}
    )
    try:
        process = subprocess.Popen(
            program.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            **rights,
        )
    except OSError as error:
        raise UsageError(f"{program.command[0]}: cannot be started: {error.strerror}") from None
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _lines(process: subprocess.Popen[bytes], deadline_s: float, program: ProgramCalled) -> Iterator[str]:
    """What it writes, line by line. Raises RunError."""
    assert process.stdout is not None
    descriptor, unread = process.stdout.fileno(), bytearray()
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(deadline_s - time.monotonic(), 0))
        if not ready:
            raise RunError(f"{program.command[0]}: its time of {program.timeout_s:g} s is over; --timeout gives more")
        chunk = os.read(descriptor, _CHUNK)
        unread += chunk
        if not chunk or len(unread) > MOST_LINE_BYTES:
            break
        *lines, rest = unread.split(b"\n")
        unread = bytearray(rest)
        yield from (line.decode(errors="replace") for line in lines if line.strip())
    if unread.strip():
        yield unread.decode(errors="replace")
