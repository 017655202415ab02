"""A program of the user that answers lines of JSON on its standard input and output."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.runner.line_program import LineProgram
from mrc_testbed.testbed.state import sudo_caller

_ANSWER_S = 5.0
MOST_LINE_BYTES = 1 << 20


class CalledProgram:
    """Runs until `end`, by the user who called sudo, with its standard error passed on."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """Start it in `folder`. Raises RunError where it cannot be started."""
        self._name = command[0]
        try:
            self._program = LineProgram(command, sudo_caller(), folder)
        except OSError as error:
            raise RunError(f"controller: {self._name} cannot be started: {error.strerror}") from None

    def ask(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer to a line. Raises RunError for one that is no JSON object, or does not come within 5 s."""
        try:
            self._program.say(json.dumps(line))
        except BrokenPipeError:
            raise self._ended() from None
        text = self._line()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise RunError(f"controller: {self._name} answered {text[:80].decode(errors='replace')!r}, no JSON object")
        return answer

    def _line(self) -> bytes:
        try:
            line = self._program.hear(time.monotonic() + _ANSWER_S, MOST_LINE_BYTES)
        except TimeoutError:
            raise RunError(f"controller: {self._name} has not answered a line within {_ANSWER_S:g} s") from None
        if len(line) > MOST_LINE_BYTES:
            raise RunError(f"controller: {self._name} answered a line of more than {MOST_LINE_BYTES} bytes")
        if not line.endswith(b"\n"):
            raise self._ended()
        return line.removesuffix(b"\n")

    def _ended(self) -> RunError:
        return RunError(f"controller: {self._name} has ended with status {self._program.wait()}")

    def end(self) -> None:
        """It and all that it has started are gone afterwards."""
        self._program.end()
