"""Syntax of a shell in a command line that no shell reads. Pure.

Quoted text is meant as it is. `a|b` inside a word is too: without a shell it is an honest argument, as `&` in a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_OPERATOR = re.compile(r"\|\|?&?|&&?|;|\(|\)|\d*(>>?|<<?)(&\d+|&-)?|&>>?")
_REDIRECTED = re.compile(r"(\d*(>>?|<)|&>>?)[\w./&-]+")
_VARIABLE = re.compile(r"\$(\{[A-Za-z_]|[A-Za-z_]|\()|`")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_QUOTED = "\0"
"""In place of a quoted character."""


class CommandLine(tuple[str, ...]):
    """The words of a command. `shell`: what only a shell would do with them, in words; none where it is a list."""

    shell: tuple[str, ...] = ()

    @staticmethod
    def of(words: list[str], text: str | None = None) -> CommandLine:
        """`text`: the line that the words were cut from."""
        made = CommandLine(words)
        made.shell = tuple(_syntax([_Word(word, word) for word in words] if text is None else _words(text), text))
        return made


class _Word(NamedTuple):
    """A word without its quoted characters; and without those in which no variable is replaced."""

    bare: str
    double: str


def _words(text: str) -> list[_Word]:
    words: list[_Word] = []
    bare = double = quote = ""
    inside = escaped = False
    for each in text:
        if escaped or (quote and each != quote and not (each == "\\" and quote == '"')):
            bare += _QUOTED
            double += each if quote == '"' and not escaped else _QUOTED
            escaped = False
        elif each == "\\" and quote != "'":
            escaped = True
        elif each in "'\"":
            quote, inside = "" if quote else each, True
        elif each.isspace():
            words += [_Word(bare, double)] if bare or inside else []
            bare, double, inside = "", "", False
        else:
            bare, double = bare + each, double + each
    return [*words, *([_Word(bare, double)] if bare or inside else [])]


def _syntax(words: list[_Word], text: str | None) -> Iterator[str]:
    """Each of its kind once. In a list of words only an operator is certain."""
    if words and (assigned := _ASSIGNED.fullmatch(words[0].bare)):
        yield f'`{words[0].bare}` is taken for the command; write `env: {{{assigned[1]}: "{assigned[2]}"}}`'
    found: list[str] = []
    option = False
    for number, (bare, double) in enumerate(words):
        if (number and _OPERATOR.fullmatch(bare)) or (text and _at_an_end(bare)):
            found.append(bare.replace(_QUOTED, "?"))
        elif text and (_VARIABLE.search(double) or bare == "~" or bare.startswith("~/")):
            found.append(double.replace(_QUOTED, "?"))
        elif text and number and not option and not bare.startswith("-") and _is_glob(bare):
            found.append(bare.replace(_QUOTED, "?"))
        option = bare.startswith("-")
    if found:
        shown = " and ".join(f"`{one}`" for one in dict.fromkeys(found[:2]))
        yield f"no shell reads the command: {shown} is passed on as it is; write [sh, -c, '...']"


def _at_an_end(bare: str) -> bool:
    return bool(_REDIRECTED.fullmatch(bare)) or (len(bare) > 1 and bare[-1] in ";&|" and "://" not in bare)


def _is_glob(bare: str) -> bool:
    return ("*" in bare or bool(re.search(r"[\w/]\?(\W|$)|\[[\w-]+\]", bare))) and "://" not in bare
