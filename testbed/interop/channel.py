"""A program of form B: its control channel is descriptor 3. And step 1 of it, before there is a network."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from mrc_testbed.testbed.interop.evidence import Complaints
from mrc_testbed.testbed.interop.program import (
    ANSWER_S,
    MOST_LINE_BYTES,
    VERSION,
    ContractFailure,
    Fields,
    Unsupported,
)
from mrc_testbed.testbed.launcher.said import NotAnObject, read_object
from mrc_testbed.testbed.launcher.start import KeptProgram, launch
from mrc_testbed.testbed.terminal import plain

_TAIL_BYTES = 2000


def start_on_channel(
    command: Sequence[str], folder: Path, control: int, log: IO[bytes], network: int | None = None
) -> KeptProgram:
    """Start it in `folder`, and in the network namespace at descriptor `network`. Its output goes to `log`. Raises
    ContractFailure."""
    try:
        return launch(command, (subprocess.DEVNULL, log, log), folder, network=network, control=control)
    except OSError as error:
        raise ContractFailure(f"cannot start {command[0]}: {error.strerror or error}") from error


def read_fields(line: bytes) -> Fields:
    """A line as an object. Raises ContractFailure."""
    try:
        return read_object(line)
    except NotAnObject as error:
        raise ContractFailure(f"{error.kind}: {plain(line[:80].decode(errors='replace'))}") from None


def read_hello(fields: Fields) -> str:
    """The name that the program gives itself. Raises ContractFailure."""
    if fields.get("event") != "hello" or fields.get("contract") != VERSION:
        raise ContractFailure(f'its first line must be the event hello with "contract": {VERSION}')
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise ContractFailure('its first line must have "name", a text')
    return name


def refuse_unsupported(command: str, answer: Fields) -> None:
    """Raises Unsupported where the answer says so."""
    if answer.get("ok") is False and answer.get("unsupported") is True:
        raise Unsupported(f"`{command}`: {plain(str(answer.get('error', 'no reason given')))}")


def last_words(log: Path) -> str:
    """The end of what it wrote to its output and its standard error, to be added to a reason."""
    tail = log.read_bytes()[-_TAIL_BYTES:] if log.exists() else b""
    words = " ".join(plain(tail.decode(errors="replace")).split())[-300:]
    return f"; standard error: {words}" if words else ""


def judge_channel(
    command: Sequence[str], folder: Path, log: Path, answer_s: float = ANSWER_S
) -> tuple[str, Complaints]:
    """Step 1: the name that it gives itself, and what is wrong. Raises ContractFailure and Unsupported."""
    says, wrong = "", []
    for stops in (True, False):
        try:
            says, complaint = _life(command, folder, log, answer_s, stops)
        except ContractFailure as failure:
            raise ContractFailure(f"{failure}{last_words(log)}") from None
        wrong += [complaint] if complaint else []
    return says, iter(wrong)


def _life(command: Sequence[str], folder: Path, log: Path, answer_s: float, stops: bool) -> tuple[str, str]:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs, log.open("ab") as output:
            program = start_on_channel(command, folder, theirs.fileno(), output)
        try:
            lines = _Lines(ours, answer_s)
            says = read_hello(read_fields(lines.next("its first line")))
            if lines.answer("no such request").get("ok") is not False:
                return says, "answered a request that does not exist with ok"
            if stops and lines.answer("stop").get("ok") is not True:
                return says, "refused `stop`"
            ours.shutdown(socket.SHUT_RDWR)
            status = program.wait(answer_s)
            after = "`stop`" if stops else "the end of its control channel"
            return says, f"exit status {status} after {after}, not 0" if status else ""
        except TimeoutError:
            return says, f"still there {answer_s:g} s after {'`stop`' if stops else 'the end of its control channel'}"
        finally:
            program.end()


class _Lines:
    """Requests and answers, one at a time; events between them are passed over."""

    def __init__(self, control: socket.socket, answer_s: float) -> None:
        self._control = control
        self._answer_s = answer_s
        self._unread = b""
        self._number = 0

    def answer(self, command: str) -> Fields:
        """Raises ContractFailure and Unsupported."""
        self._number += 1
        with suppress(OSError):
            self._control.sendall(json.dumps({"id": self._number, "cmd": command}).encode() + b"\n")
        ends = time.monotonic() + self._answer_s
        while time.monotonic() < ends:
            fields = read_fields(self.next(f"the answer to `{command}`"))
            if fields.get("id") == self._number:
                return fields
        raise ContractFailure(f"gave no answer to `{command}` within {self._answer_s:g} s")

    def next(self, what: str) -> bytes:
        """The next line. Raises ContractFailure."""
        ends = time.monotonic() + self._answer_s
        while b"\n" not in self._unread:
            if len(self._unread) > MOST_LINE_BYTES:
                raise ContractFailure(f"{what} is longer than {MOST_LINE_BYTES >> 20} MiB")
            self._control.settimeout(max(ends - time.monotonic(), 0.001))
            try:
                chunk = self._control.recv(1 << 16)
            except TimeoutError:
                raise ContractFailure(f"gave no line for {what} within {self._answer_s:g} s") from None
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise ContractFailure(f"ended before {what}")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line
