"""Where output goes: a terminal with its width and colours, or a file or pipe of fixed width."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

LOG_WIDTH = 110
"""Columns where the output goes to a file or a pipe."""


class PatientConsole(Console):
    """A console whose reader may leave (`| head`), or whose file may have no room: then it is silent, and what goes on
    behind it is not broken off."""

    lost = ""
    """Why output could not be written, where its reader has not just left."""

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            self.lost = error.strerror or str(error)
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Say nothing more, not even when the interpreter flushes its streams at the end."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    @property
    def _stream(self) -> TextIO:
        return sys.stderr if self.stderr else sys.stdout


def open_console(stderr: bool = False) -> PatientConsole:
    """For standard output, or standard error where the other is taken."""
    console = PatientConsole(highlight=False, stderr=stderr)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    return console
