"""Output consoles: a terminal with its width and colours, or a file or pipe of fixed width."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from testbed.terminal import plain

LOG_WIDTH = 110
"""Width of a file or a pipe."""
_BACK = "\r"
"""What a line ends with that is drawn over."""


class PatientConsole(Console):
    """A console that goes silent when its reader leaves (`| head`) or the disk is full, so that the command
    continues."""

    lost = ""
    """Why output failed, unless its reader has just left."""

    def __init__(self, *, markup: bool = False, **options: Any) -> None:
        """`options` of rich. Without `markup`, as most of what is printed, cells of tables too, are words of files: a
        plugin `cc[v2].py` lost three letters, and `[/x]` in a run folder ended the command."""
        super().__init__(markup=markup, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """As text that a terminal does not obey; what the console itself says to the terminal stays."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text == _BACK:
                yield segment
            else:
                yield Segment(plain(segment.text), segment.style)

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            self.lost = error.strerror or str(error)
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Discard further output, including what the interpreter flushes at exit."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    @property
    def _stream(self) -> TextIO:
        return sys.stderr if self.stderr else sys.stdout


def open_console(stderr: bool = False) -> PatientConsole:
    """For standard output, or for standard error if standard output carries data."""
    console = PatientConsole(highlight=False, stderr=stderr)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    return console
