"""What a program prints: kept in a file, cut in the middle where it is much; its lines, by time of arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

HEAD_BYTES = 1 << 20
TAIL_BYTES = 1 << 16
LONGEST_LINE = 1 << 14
"""A longer one is taken in pieces."""
LAST_LINES = 3
"""Shown of a program that failed."""


class Output:
    """The output of one program in `file`: its first `HEAD_BYTES`, and its last `TAIL_BYTES`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._written = 0
        self._tail = bytearray()
        self._left_out = 0
        self._line = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self._file.name)

    def take(self, data: bytes) -> Iterator[str]:
        """Keep what came; the lines that are whole now. Raises OSError when it cannot be written."""
        self._keep(data)
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > LONGEST_LINE:
            lines.append(self._line)
            self._line = b""
        for line in lines:
            yield self._seen(line)

    def close(self) -> Iterator[str]:
        """The program has ended: a last line without an end."""
        if self._line:
            yield self._seen(self._line)
        if self._left_out:
            self._file.write(f"\n[{self._left_out} bytes left out]\n".encode())
        self._file.write(self._tail)
        self._file.close()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last ones that are not empty."""
        return tuple(self._last)

    def _seen(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip("\r")
        if text.strip():
            self._last.append(text.strip())
        return text

    def _keep(self, data: bytes) -> None:
        room = max(0, HEAD_BYTES - self._written)
        self._file.write(data[:room])
        self._written += len(data[:room])
        self._tail += data[room:]
        over = len(self._tail) - TAIL_BYTES
        if over > 0:
            self._left_out += over
            del self._tail[:over]
