"""Calls of the command in this process."""

from __future__ import annotations

from collections.abc import Callable


class Ended:
    """How a call of the command ended, and what it printed."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def said(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


Call = Callable[..., Ended]
