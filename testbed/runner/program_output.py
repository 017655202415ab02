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
_SHOWN = 200
"""Characters of each."""
TOLD_NS = 10**8
"""A shorter wait for its reader changes nothing about a program."""


class Output:
    """The output of one program in `file`: its first `HEAD_BYTES`, and its last `TAIL_BYTES`. Without `read` nobody
    looks at its lines, and the last ones alone are kept in mind."""

    def __init__(self, file: IO[bytes], read: bool = True) -> None:
        self._file = file
        self._read = read
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
        lines = (self._line + data).splitlines(keepends=True)
        self._line = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        if len(self._line) > LONGEST_LINE:
            lines.append(self._line)
            self._line = b""
        for line in lines if self._read else lines[-LAST_LINES:]:
            for begin in range(0, len(line), LONGEST_LINE):
                yield self._seen(line[begin : begin + LONGEST_LINE])

    def rest(self) -> Iterator[str]:
        """The program has ended: a last line without an end."""
        line, self._line = self._line, b""
        if line:
            yield self._seen(line)

    def close(self, held_ns: int = 0) -> None:
        """Nobody prints any more. `held_ns`: how long the program had to wait for its reader."""
        if held_ns >= TOLD_NS:
            self._file.write(f"\n[held back for {held_ns / 1e9:.1f} s: it printed faster than it is read]\n".encode())
        if self._left_out:
            self._file.write(f"\n[{self._left_out} bytes left out]\n".encode())
        self._file.write(self._tail)
        self._file.close()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last ones that are not empty."""
        return tuple(self._last)

    def _seen(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip("\r\n")
        if shown := text.strip():
            self._last.append(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...")
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
