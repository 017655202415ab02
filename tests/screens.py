"""A terminal for tests: a pty whose other end is an interpreter, so that what is asserted is what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pyte
from rich.console import Console

Colours = Literal["standard", "256", "truecolor"]


class FakeTerminal:
    """`console` writes to it; `rows` is the screen as text. `colors`: as rich calls what a terminal can show."""

    def __init__(
        self,
        columns: int = 80,
        rows: int = 24,
        colors: Colours | None = "standard",
        encoding: str = "utf-8",
    ) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self.file = os.fdopen(slave, "w", encoding=encoding)
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.resize(columns, rows)
        self.console = Console(
            file=self.file,
            force_terminal=True,
            color_system=colors,
            no_color=not colors,
            highlight=False,
            width=columns,
        )

    def resize(self, columns: int, rows: int) -> None:
        """As when a person pulls at the window."""
        self.read()
        fcntl.ioctl(self.file.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within the block all is read as it is written, by a thread: a terminal takes some KB, then writers wait."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.01):
                self.read()

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def read(self) -> bytes:
        """What has been written since it was read last."""
        found = b""
        try:
            while True:
                found += os.read(self._master, 1 << 16)
        except BlockingIOError:
            self._stream.feed(found)
            self.sent += found
            return found

    @property
    def rows(self) -> list[str]:
        """The screen without blanks at the right and empty rows at the bottom."""
        self.read()
        text = "\n".join(row.rstrip() for row in self.screen.display).rstrip()
        return text.splitlines()

    @property
    def above(self) -> list[str]:
        """What has left the screen at its top."""
        self.read()
        columns = range(self.screen.columns)
        return ["".join(row[column].data for column in columns).rstrip() for row in self.screen.history.top]

    @property
    def echoes(self) -> bool:
        """What is typed appears."""
        return bool(termios.tcgetattr(self.file.fileno())[3] & termios.ECHO)

    def type(self, keys: bytes) -> None:
        """As from the keyboard."""
        os.write(self._master, keys)

    def hang_up(self) -> None:
        """As when the window is closed."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """Give both ends back."""
        self.file.close()
        if self._master >= 0:
            os.close(self._master)
