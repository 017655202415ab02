"""Which run of a lesson a text means: `nacks [drop-first]`, `qp_errors == 0 [reboots, planes=2]`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_AT_THE_END = re.compile(r"\s*\[([^\[\]]*)\]\s*$")


class InCell(NamedTuple):
    """A text without its brackets, and the words in them: names of a run and of a cell. No words: every cell."""

    text: str
    words: tuple[str, ...]


def split_cell(text: str) -> InCell:
    """Take the brackets off the end of a text."""
    found = _AT_THE_END.search(text)
    if found is None:
        return InCell(text.strip(), ())
    words = tuple(word.strip() for word in found[1].split(",") if word.strip())
    return InCell(text[: found.start()].strip(), words)


def is_meant(words: Sequence[str], run: str, cell: Sequence[str]) -> bool:
    """Whether the words pick this cell of this run: each is the run's name or one of the cell's settings."""
    return all(word == run or word in cell for word in words)


def bracketed(words: Sequence[str]) -> str:
    """`[reboots, planes=2]`; empty without words."""
    return f"[{', '.join(words)}]" if words else ""
