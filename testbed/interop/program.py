"""A program that speaks contract 1: requests on its standard input, one answer each on its standard output.

It may be silent, say too much, lie or die. Each ends with one `ContractFailure` in bounded time.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.launcher.said import NotAnObject, read_object
from mrc_testbed.testbed.launcher.start import launch
from mrc_testbed.testbed.terminal import plain

VERSION = 1
"""Of the contract."""
MOST_LINE_BYTES = 4 << 20
"""Of a request or an answer."""
ANSWER_S = 5.0
"""Longest wait for one answer, and for the end after `stop`."""
MOST_WAIT_S = 120.0
"""Longest wait for all answers of one program together."""
_LAST_S = 1.0
"""From its last word to its end, where it ends by itself."""
_CHUNK_BYTES = 1 << 16
_TAIL_BYTES = 2000
"""What is kept of standard error."""
_LOGGED_CHARACTERS = 400
"""Of a line in the log."""

Fields = dict[str, Any]


class ContractFailure(Exception):
    """The program broke the contract; the text says how."""


class Unsupported(Exception):
    """The program says that it cannot do something; the text says what."""


class ContractProgram:
    """A program from its hello to its end. `log`: where its requests and answers are written, long ones cut.
    `ended_by`: a command that ends what no kernel ends with it, such as a container; empty for none."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        log: Path,
        answer_s: float = ANSWER_S,
        ended_by: Sequence[str] = (),
    ) -> None:
        """Start it in `folder`. Raises ContractFailure."""
        self.waited_s = 0.0
        """For answers, so far."""
        self.broken: ContractFailure | Unsupported | None = None
        """What ended it first."""
        self._answer_s = answer_s
        self._number = 0
        self._unread = b""
        self._said_all = False
        self._errors = b""
        self._log = log.open("w", encoding="utf-8")
        try:
            self._kept = launch(command, (subprocess.PIPE,) * 3, folder, then=ended_by)
        except OSError as error:
            self._log.close()
            raise ContractFailure(f"cannot start {command[0]}: {error.strerror or error}") from error
        self._process = self._kept.process
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._input, self._output = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        for stream in (self._input, self._output, self._process.stderr):
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._output, selectors.EVENT_READ, self._read_output)
        self._selector.register(self._process.stderr, selectors.EVENT_READ, self._read_errors)
        self._closed = False

    def hello(self) -> str:
        """Its first line; returns the name that it gives itself. Raises ContractFailure."""
        fields = self._fields(self._line("its first line"))
        if fields.get("contract") != VERSION:
            raise self._failure(f'its first line must have "contract": {VERSION}, not {fields.get("contract")!r}')
        name = fields.get("name")
        if not isinstance(name, str) or not name:
            raise self._failure('its first line must have "name", a text')
        return name

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Keep in `broken` what is raised meanwhile: who called may not hear of it."""
        try:
            yield
        except (ContractFailure, Unsupported) as error:
            self.broken = self.broken or error
            raise

    def ask(self, command: str, **fields: Any) -> Fields:
        """The answer to one request. Raises ContractFailure; Unsupported where it says so."""
        with self.noting():
            return self._asked(command, fields)

    def _asked(self, command: str, fields: Fields) -> Fields:
        answer = self.reply(command, **fields)
        if answer["ok"]:
            return answer
        error = answer.get("error")
        text = plain(str(error)) if error is not None else "no reason given"
        if answer.get("unsupported") is True:
            raise Unsupported(f"`{command}`: {text}")
        raise self._failure(f"refused `{command}`: {text}")

    def reply(self, command: str, **fields: Any) -> Fields:
        """The answer, whatever it says. Raises ContractFailure for what is none."""
        self._number += 1
        text = json.dumps({"id": self._number, "cmd": command, **fields}, separators=(",", ":"))
        self._say(text.encode() + b"\n", command)
        answer = self._fields(self._line(f"the answer to `{command}`"))
        if answer.get("id") != self._number or not isinstance(answer.get("ok"), bool):
            wanted = f'"id": {self._number} and "ok"'
            raise self._failure(f"the answer to `{command}` must have {wanted}, not {answer.get('id')!r}")
        return answer

    def end_of_input(self) -> None:
        """Close its standard input."""
        with suppress(OSError):
            self._input.close()

    def exit_status(self) -> int:
        """How it ended, within the time of an answer. Raises ContractFailure."""
        self.end_of_input()
        deadline = time.monotonic() + self._answer_s
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise self._failure(f"still there after {self._answer_s:g} s")
            self._turn(0.01)
        return self._process.returncode

    def close(self) -> None:
        """It and all that it has started are gone afterwards."""
        if self._closed:
            return
        self._closed = True
        self._kept.end()
        self._selector.close()
        for stream in (self._input, self._output, self._process.stderr):
            with suppress(OSError):
                assert stream is not None
                stream.close()
        self._log.close()

    # Input and output

    def _say(self, line: bytes, command: str) -> None:
        self._note(">", line)
        began = time.monotonic()
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._input.fileno(), left) :]
            except BlockingIOError:
                self._wait(began, f"does not read `{command}`")
            except (BrokenPipeError, ValueError):
                raise self._failure(f"ended before `{command}`") from None

    def _line(self, what: str) -> bytes:
        """The next line. Raises ContractFailure."""
        began = time.monotonic()
        while b"\n" not in self._unread:
            if len(self._unread) > MOST_LINE_BYTES:
                raise self._failure(f"{what} is longer than {MOST_LINE_BYTES >> 20} MiB")
            if self._said_all:
                raise self._failure(f"ended before {what}")
            self._wait(began, f"gave no line for {what}")
        self.waited_s += time.monotonic() - began
        line, _, self._unread = self._unread.partition(b"\n")
        self._note("<", line)
        if len(line) > MOST_LINE_BYTES:
            raise self._failure(f"{what} is longer than {MOST_LINE_BYTES >> 20} MiB")
        return line

    def _wait(self, began: float, complaint: str) -> None:
        spent = time.monotonic() - began
        if spent > self._answer_s:
            raise self._failure(f"{complaint} within {self._answer_s:g} s")
        if self.waited_s + spent > MOST_WAIT_S:
            raise self._failure(f"took more than {MOST_WAIT_S:g} s for its answers together")
        self._turn(min(0.1, self._answer_s - spent))

    def _turn(self, most_s: float) -> None:
        if not self._selector.get_map():
            time.sleep(min(most_s, 0.01))
        for key, _ in self._selector.select(max(most_s, 0)):
            read: Callable[[], None] = key.data
            read()

    def _read_output(self) -> None:
        self._unread += self._chunk(self._output)

    def _read_errors(self) -> None:
        self._errors = (self._errors + self._chunk(self._process.stderr))[-_TAIL_BYTES:]

    def _chunk(self, stream: Any) -> bytes:
        chunk = os.read(stream.fileno(), _CHUNK_BYTES)
        if not chunk:
            self._selector.unregister(stream)
            self._said_all |= stream is self._output
        return chunk

    def _fields(self, line: bytes) -> Fields:
        try:
            return read_object(line)
        except NotAnObject as error:
            raise self._failure(f"{error.kind}: {plain(line[:80].decode(errors='replace'))}") from None

    def _failure(self, text: str) -> ContractFailure:
        """With how it ended, and the end of what it wrote to standard error."""
        self._turn(0.05)
        if self._said_all:
            with suppress(TimeoutError):
                self._kept.wait(_LAST_S)
        status = self._process.poll()
        ended = "" if status is None else f"; exit status {status}" if status >= 0 else f"; killed by signal {-status}"
        tail = " ".join(plain(self._errors.decode(errors="replace")).split())[-300:]
        return ContractFailure(f"{text}{ended}" + (f"; standard error: {tail}" if tail else ""))

    def _note(self, way: str, line: bytes) -> None:
        text = line.rstrip(b"\n").decode(errors="replace")
        cut = "" if len(text) <= _LOGGED_CHARACTERS else f"... {len(text)} characters"
        self._log.write(f"{way} {text[:_LOGGED_CHARACTERS]}{cut}\n")
