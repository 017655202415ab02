"""A program of the user that answers lines of JSON on its standard input and output."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import RunError

_ANSWER_S = 5.0
MOST_LINE_BYTES = 1 << 20


class CalledProgram:
    """Runs until `end`, by the user who called sudo, with its standard error passed on."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """Start it in `folder`. Raises RunError where it cannot be started."""
        self._name = command[0]
        numbers = [os.environ.get(key, "") for key in ("SUDO_UID", "SUDO_GID")]
        rights: dict[str, Any] = {}
        if os.geteuid() == 0 and all(number.isdigit() for number in numbers):
            rights = {"user": int(numbers[0]), "group": int(numbers[1]), "extra_groups": []}
        try:
            self._process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, **rights
            )
        except OSError as error:
            raise RunError(f"controller: {self._name} cannot be started: {error.strerror}") from None
        self._unread = b""

    def ask(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer to a line. Raises RunError for one that is no JSON object, or does not come within 5 s."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RunError(f"controller: {self._name} has ended with status {self._process.wait()}") from None
        text = self._line()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise RunError(f"controller: {self._name} answered {text[:80].decode(errors='replace')!r}, no JSON object")
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        descriptor, deadline_s = self._process.stdout.fileno(), time.monotonic() + _ANSWER_S
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(deadline_s - time.monotonic(), 0))
            if not ready:
                raise RunError(f"controller: {self._name} has not answered a line within {_ANSWER_S:g} s")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise RunError(f"controller: {self._name} has ended with status {self._process.wait()}")
            self._unread += chunk
            if len(self._unread) > MOST_LINE_BYTES:
                raise RunError(f"controller: {self._name} answered a line of more than {MOST_LINE_BYTES} bytes")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def end(self) -> None:
        """It and all that it has started are gone afterwards."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
