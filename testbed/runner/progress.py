"""What a person sees while a run lasts: one changing line on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import time
from typing import Protocol

from rich.console import Console
from rich.status import Status

_LINE_EVERY_S = 5.0
"""Where nothing can be overwritten, work is told so often and no more."""


class Progress(Protocol):
    """Told by the phases of a run what goes on."""

    def phase(self, name: str) -> None: ...

    def work(self, done: float, of: float, text: str) -> None: ...

    def fault(self, text: str) -> None: ...

    def close(self) -> None: ...


class Silent:
    """--quiet."""

    def phase(self, name: str) -> None:
        """Not shown."""

    def work(self, done: float, of: float, text: str) -> None:
        """Not shown."""

    def fault(self, text: str) -> None:
        """Not shown."""

    def close(self) -> None:
        """Nothing is open."""


class Lines:
    """Plain lines, for a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = self._told = time.monotonic()

    def phase(self, name: str) -> None:
        """A line a phase."""
        self._tell(name)

    def work(self, done: float, of: float, text: str) -> None:
        """A line every few seconds."""
        if done == of or time.monotonic() - self._told >= _LINE_EVERY_S:
            self._told = time.monotonic()
            self._tell(text)

    def fault(self, text: str) -> None:
        """A line each."""
        self._tell(text)

    def close(self) -> None:
        """Nothing is open."""

    def _tell(self, text: str) -> None:
        line = f"{time.monotonic() - self._start:6.1f} s  {text}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Terminal(Lines):
    """A changing line for phases and work; faults stay above it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._status: Status = console.status("starting")
        self._status.start()

    def phase(self, name: str) -> None:
        """Replaces what was there."""
        self._status.update(name)

    def work(self, done: float, of: float, text: str) -> None:
        """Replaces what was there, with a bar."""
        filled = round(24 * done / of)
        bar = f"[cyan]{'━' * filled}[/cyan][dim]{'─' * (24 - filled)}[/dim]"
        self._status.update(f"{bar} {text}")

    def close(self) -> None:
        """Give the line back."""
        self._status.stop()


def progress_for(console: Console, quiet: bool) -> Progress:
    """The right one for where the output goes."""
    if quiet:
        return Silent()
    return Terminal(console) if console.is_terminal else Lines(console)
