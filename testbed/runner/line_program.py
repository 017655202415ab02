"""A program of the user that hears lines on its standard input and says lines on its standard output."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_CHUNK_BYTES = 1 << 16


class LineProgram:
    """Runs until it ends, or until `end`. Its standard error is that of this process."""

    def __init__(self, command: Sequence[str], owner: tuple[int, int] | None, folder: Path | None = None) -> None:
        """Start it, by the user and group `owner` (None: as this process), in `folder` (None: this one). Raises
        OSError."""
        rights: dict[str, Any] = {} if owner is None else {"user": owner[0], "group": owner[1], "extra_groups": []}
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, **rights
        )
        assert self._process.stdin
        assert self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        self._unread = b""

    def say(self, line: str) -> None:
        """Tell it one line. Raises BrokenPipeError where it hears no more."""
        self._input.write(line.encode() + b"\n")
        self._input.flush()

    def hear(self, deadline_s: float, most_bytes: int) -> bytes:
        """The next that it says, with its line end. Without one: the last, or a line of more than `most_bytes`; empty:
        it says no more. Raises TimeoutError at `deadline_s` of time.monotonic."""
        while b"\n" not in self._unread and len(self._unread) <= most_bytes:
            ready, _, _ = select.select([self._output], [], [], max(deadline_s - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            chunk = os.read(self._output.fileno(), _CHUNK_BYTES)
            if not chunk:
                break
            self._unread += chunk
        line, end, rest = self._unread.partition(b"\n")
        self._unread = rest
        return line + end

    def wait(self, most_s: float | None = None) -> int:
        """Its exit status, or -N for signal N, when it has ended. Raises TimeoutError after `most_s`."""
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            return self._process.wait(most_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def end(self) -> None:
        """It and all that it has started are gone afterwards."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._input, self._output):
            with suppress(OSError):
                stream.close()
