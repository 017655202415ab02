"""Output consoles: a terminal with its width and colours, or a file or pipe of fixed width."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.terminal import plain

LOG_WIDTH = 110
"""Width of a file or a pipe."""
_KEPT = "\ue000"
"""What is printed as a blank at which no line ends: rich ends lines at a no-break space too."""
_UNIT = re.compile(r"(?<=\d) (?=(?:[num]s|us|s|min|h|[kMG]?(?:b/s|B/s)|[kKMGT]i?B|B|[TR]|rtt|RTT|%)(?![\w/]))")
_BACK = "\r"
"""What a line ends with that is drawn over."""


def unbroken(text: str) -> str:
    """The text with each number and its unit on one line, on a `PatientConsole`."""
    return _UNIT.sub(_KEPT, text)


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
                yield Segment(plain(segment.text.replace(_KEPT, " ")), segment.style)

    def print_without_blanks(self, table: Table) -> None:
        """A table without the blanks that fill its last column, so that lines of a file or pipe end with a word."""
        for line in self.render_lines(table, pad=False):
            text = Text.assemble(*((part.text, part.style or "") for part in line))
            text.rstrip()
            self.print(text, soft_wrap=True)

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


def plain_table(**more: Any) -> Table:
    """A table of few lines, as all results have it; `more` of rich."""
    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", **{"padding": (0, 1), **more}
    )


def open_console(stderr: bool = False) -> PatientConsole:
    """For standard output, or for standard error if standard output carries data."""
    console = PatientConsole(highlight=False, stderr=stderr)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    return console
