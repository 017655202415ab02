"""Suggestions for misspelt words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest of the known words, or nothing."""
    near = get_close_matches(word, list(known))
    return f"; did you mean {near[0]!r}?" if near else ""


def all_known(word: str, known: Iterable[str]) -> str:
    """The same, and all known words after it: `; did you mean 'x'? There are x, y`."""
    words = list(known)
    hint = did_you_mean(word, words)
    return f"{hint}{' There' if hint else '; there'} are {', '.join(words)}"
