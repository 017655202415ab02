"""A program of the user that answers lines of JSON on its standard input and output."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.launcher.line_program import LineProgram
from mrc_testbed.testbed.launcher.said import NotAnObject, read_object
from mrc_testbed.testbed.state import sudo_caller

_ANSWER_S, _END_S = 5.0, 1.0
MOST_LINE_BYTES = 1 << 20


class CalledProgram:
    """Runs until `end`, by the user who called sudo, with its standard error passed on."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """Start it in `folder`. Raises RunError where it cannot be started."""
        self._name = command[0]
        try:
            self._program = LineProgram(command, sudo_caller(), folder)
            self.kept_by = self._program.kept_by
        except OSError as error:
            raise RunError(f"controller: {self._name} cannot be started: {error.strerror}") from None

    def ask(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer to a line. Raises RunError for one that is no JSON object, or does not come within 5 s."""
        text = self._line(json.dumps(line))
        try:
            return read_object(text)
        except NotAnObject as error:
            said = text[:80].decode(errors="replace")
            raise RunError(f"controller: {self._name} answered {said!r}, which is {error}") from None

    def _line(self, asked: str) -> bytes:
        deadline_s = time.monotonic() + _ANSWER_S
        try:
            self._program.say(asked, deadline_s)
            line = self._program.hear(deadline_s, MOST_LINE_BYTES)
        except BrokenPipeError:
            raise self._ended() from None
        except TimeoutError:
            raise RunError(f"controller: {self._name} has not answered a line within {_ANSWER_S:g} s") from None
        if len(line) > MOST_LINE_BYTES:
            raise RunError(f"controller: {self._name} answered a line of more than {MOST_LINE_BYTES} bytes")
        if not line.endswith(b"\n"):
            raise self._ended()
        return line.removesuffix(b"\n")

    def _ended(self) -> RunError:
        return RunError(f"controller: {self._name} has ended with status {self._status()}")

    def _status(self) -> str:
        try:
            return str(self._program.wait(_END_S))
        except TimeoutError:
            return "none: it goes on without its streams"

    def end(self) -> None:
        """It and all that it has started are gone afterwards."""
        self._program.end()
