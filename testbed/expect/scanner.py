"""A position in the text of an expectation, and parse errors. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NoReturn


class ExpectError(ValueError):
    """An unreadable expectation. `column` counts from 0 inside the text."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


class Scanner:
    """The rest of a text; spaces between words are ignored."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def column(self) -> int:
        """Column of the next word."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at

    @property
    def rest(self) -> str:
        """The remaining text."""
        return self._text[self.column :]

    def take(self, pattern: str) -> re.Match[str] | None:
        """The next characters if they match; advances behind them."""
        match = re.compile(pattern, re.ASCII).match(self._text, self.column)
        if match is not None:
            self._at = match.end()
        return match

    def fail(self, message: str, column: int | None = None) -> NoReturn:
        """Raise ExpectError at the next word or the given column."""
        raise ExpectError(self.column if column is None else column, message)


def plain(number: float) -> str:
    """The shortest digits that read back as the same number, without exponent."""
    return f"{Decimal(repr(float(number))):f}".removesuffix(".0")
