"""Draws frames on a terminal in place: only changed rows are written, and everything is removed at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style

from mrc_testbed.testbed.live.layout import Layout
from mrc_testbed.testbed.live.rows import ASCII, STYLES, UNICODE, length
from mrc_testbed.testbed.live.tty import Tty, unbroken
from mrc_testbed.testbed.terminal import plain
from mrc_testbed.topos.plan import Plan

_ERASE_BELOW = "\x1b[J"
_ERASE_TO_END = "\x1b[K"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""Disables line wrap: in a terminal that just became narrower a long row must not shift the others."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronised update, for terminals that support it; others ignore it."""


class Terminal:
    """A screen (see live.py). Rows are above the cursor, which stays visible: a killed supervisor leaves a working
    terminal.

    The last row of the terminal is never used, so that nothing scrolls.
    """

    def __init__(self, console: Console, plan: Plan, tty: Tty) -> None:
        self._plan = plan
        self._tty = tty
        self._signs = UNICODE if console.encoding.lower().startswith("utf") else ASCII
        self._colors = COLOR_SYSTEMS[console.color_system] if console.color_system else None
        self._size: os.terminal_size | None = None
        self._layout: Layout
        self._shown: list[str] = []
        self._widths: list[int] = []

    def draw(self, frame: Mapping[str, Any]) -> None:
        """Draw a frame, unless the terminal has not accepted the last one yet."""
        with unbroken():
            if self._tty.ready():
                self._show(frame)

    def _show(self, frame: Mapping[str, Any]) -> None:
        text = self._resized()
        rows = self._layout.rows(frame)
        painted = ["".join(_painted(*span, self._colors) for span in row) for row in rows]
        text += self._changes(painted)
        if text:
            self._tty.write(f"{_BEGIN}{_NO_WRAP}{text}{_WRAP}{_END}")
        self._shown, self._widths = painted, [length(row) for row in rows]

    def close(self) -> None:
        """Remove everything; later output starts where the rows were."""
        self._tty.write(self._erased())
        self._tty.drain()

    def _resized(self) -> str:
        size = self._tty.size
        if size == self._size:
            return ""
        erased = self._erased()
        self._size = size
        self._layout = Layout(self._plan, self._signs, size.columns, size.lines)
        self._shown, self._widths = [], []
        return erased

    def _erased(self) -> str:
        """A terminal that became narrower has wrapped long rows: they now take more of its rows."""
        if not self._shown:
            return ""
        columns = max(1, self._tty.size.columns)
        rows = sum(max(1, -(-width // columns)) for width in self._widths)
        return f"\x1b[{rows}A\r{_ERASE_BELOW}"

    def _changes(self, painted: list[str]) -> str:
        if not self._shown:
            return "".join(f"\r{row}{_ERASE_TO_END}\n" for row in painted)
        text, above = "", 0
        for at, (row, before) in enumerate(zip(painted, self._shown, strict=True)):
            if row != before:
                target = len(painted) - at
                text += f"{_moved(target - above)}\r{row}{_ERASE_TO_END}"
                above = target
        return f"{text}{_moved(-above)}\r" if text else ""


def _moved(rows: int) -> str:
    """Cursor movement by rows, up or down."""
    return f"\x1b[{rows}A" if rows > 0 else f"\x1b[{-rows}B" if rows < 0 else ""


@lru_cache(maxsize=4096)
def _painted(text: str, style: str, colors: ColorSystem | None) -> str:
    return _style(style).render(plain(text), color_system=colors) if style else plain(text)


@lru_cache
def _style(name: str) -> Style:
    return Style.parse(STYLES[name])
