"""The terminal as a device: its size, and non-blocking output. terminal.py draws on it.

Only terminals of Unix: on Windows nothing draws, and a run prints lines.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from typing import IO

_LAST_WORDS_S = 0.5
"""Longest wait at exit for a blocked terminal."""
_ENDING = tuple(each for each in signal.Signals if each.name in {"SIGINT", "SIGTERM", "SIGHUP"})


class Tty:
    """Writes to the terminal behind `stream` through its own non-blocking descriptor: a stopped (Ctrl-S) or slow (ssh)
    terminal loses frames, and the run continues at its own pace."""

    def __init__(self, stream: IO[str]) -> None:
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._pending = b""
        self.lost = False
        """The terminal is gone, for example because its window was closed."""
        try:
            path = os.ttyname(stream.fileno())
            self._fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # it has no name here, as in some containers: then a write may block
            self._fd = os.dup(stream.fileno())

    @property
    def size(self) -> os.terminal_size:
        """Columns and rows now."""
        try:
            return os.get_terminal_size(self._fd)
        except OSError:
            return os.terminal_size((80, 24))

    def ready(self) -> bool:
        """True if all earlier output is written and more would be accepted."""
        self._push()
        return not self._pending and not self.lost and bool(select.select([], [self._fd], [], 0)[1])

    def write(self, text: str) -> None:
        """Write what the terminal accepts now; the rest is written by later calls."""
        self._pending += text.encode(self._encoding, "replace")
        self._push()

    def drain(self) -> None:
        """Write the rest, if the terminal accepts it soon."""
        give_up = time.monotonic() + _LAST_WORDS_S
        while self._pending and not self.lost and (left := give_up - time.monotonic()) > 0:
            select.select([], [self._fd], [], left)
            self._push()

    def close(self) -> None:
        """Close the descriptor; text that waits is dropped."""
        os.close(self._fd)

    def _push(self) -> None:
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._fd, self._pending) :]
        except BlockingIOError:
            return
        except OSError:
            self._pending, self.lost = b"", True


@contextlib.contextmanager
def without_echo(stream: IO[str]) -> Iterator[None]:
    """Turns echo off, because typed characters would shift the drawing.

    Ctrl-C still ends the run, but does not flush pending output: half a frame would leave the cursor at a random place.
    """
    import termios  # here, since Windows imports this file and has none

    try:
        before = termios.tcgetattr(stream.fileno())
    except (OSError, termios.error):
        yield
        return
    after = list(before)
    after[3] = after[3] & ~termios.ECHO | termios.NOFLSH
    termios.tcsetattr(stream.fileno(), termios.TCSANOW, after)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(stream.fileno(), termios.TCSANOW, before)


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Delays a signal that ends the run, so that the drawing and its known state stay consistent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_foreground(stream: IO[str]) -> bool:
    """True if this process is in the foreground of a terminal of Unix, and may draw."""
    if not hasattr(os, "tcgetpgrp"):
        return False
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return False
