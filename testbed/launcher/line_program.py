"""A program of the user that hears lines on its standard input and says lines on its standard output."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mrc_testbed.testbed.launcher.start import launch

_CHUNK_BYTES = 1 << 16


class LineProgram:
    """Runs until it ends, or until `end`. Its standard error is that of this process. `kept_by`: the means by which it
    ends with this process."""

    def __init__(self, command: Sequence[str], owner: tuple[int, int] | None, folder: Path | None = None) -> None:
        """Start it, by the user and group `owner` (None: as this process), in `folder` (None: this one). Raises
        OSError."""
        self._launched = launch(command, (subprocess.PIPE, subprocess.PIPE, None), folder, owner)
        self.kept_by = self._launched.kept_by
        process = self._launched.process
        assert process.stdin
        assert process.stdout
        self._input, self._output = process.stdin, process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._unread = b""

    def say(self, line: str, deadline_s: float) -> None:
        """Tell it one line. Raises BrokenPipeError where it hears no more, TimeoutError where it has not taken the line
        at `deadline_s` of time.monotonic."""
        left = memoryview(line.encode() + b"\n")
        while left:
            _, ready, _ = select.select([], [self._input], [], max(deadline_s - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            with suppress(BlockingIOError):
                left = left[os.write(self._input.fileno(), left) :]

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
        return self._launched.wait(most_s)

    def end(self) -> None:
        """It and all that it has started are gone afterwards."""
        self._launched.end()
        for stream in (self._input, self._output):
            with suppress(OSError):
                stream.close()
