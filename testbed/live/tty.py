"""The terminal as a device: its size, and bytes for it that never hold the run up. What is drawn is terminal.py's."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import time
from collections.abc import Iterator
from typing import IO

_LAST_WORDS_S = 0.5
"""Longest wait at exit for a blocked terminal."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Tty:
    """Writes to the terminal behind `stream` through a descriptor of its own, which alone is made not to block: a
    terminal that is stopped (Ctrl-S) or slow (ssh) loses frames, and the run goes on at its own pace."""

    def __init__(self, stream: IO[str]) -> None:
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._pending = b""
        self.lost = False
        """It is gone, as after the window was closed."""
        try:
            path = os.ttyname(stream.fileno())
            self._fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # it has no name here, as in some containers: then a write may wait
            self._fd = os.dup(stream.fileno())

    @property
    def size(self) -> os.terminal_size:
        """Columns and rows now."""
        try:
            return os.get_terminal_size(self._fd)
        except OSError:
            return os.terminal_size((80, 24))

    def ready(self) -> bool:
        """Everything that was written before has gone out, and more would."""
        self._push()
        return not self._pending and not self.lost and bool(select.select([], [self._fd], [], 0)[1])

    def write(self, text: str) -> None:
        """Send as much as the terminal takes now; the rest goes out with the next call of anything."""
        self._pending += text.encode(self._encoding, "replace")
        self._push()

    def drain(self) -> None:
        """Send what is left, if the terminal takes it soon."""
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
    """What is typed meanwhile does not appear: it would shift what is drawn. Ctrl-C ends the run as ever, but does not
    throw away what the terminal has yet to show: half a frame would leave the cursor anywhere."""
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
    """A signal that ends the run waits meanwhile: what was drawn and what is known of it stay together."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_foreground(stream: IO[str]) -> bool:
    """This process may draw there: it was not sent into the background."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return False
