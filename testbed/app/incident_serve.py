"""A program that observes a case: its lines are answered until it ends, or its time is over."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.incidents.protocol import MOST_LINE_BYTES, Conversation

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
