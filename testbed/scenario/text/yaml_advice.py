"""What a YAML parser's complaint means in a scenario, for its usual causes. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ruamel.yaml.error import MarkedYAMLError

from mrc_testbed.testbed.scenario.text.source import Position

_MUST_BE_QUOTED = re.compile(r"[*&!%@`|>?]")


def yaml_advice(error: MarkedYAMLError, lines: Sequence[str], place: Position) -> str:
    """What to mend at `place` (counting from 1), empty where the parser's own words must do."""
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    problem, context = str(error.problem or ""), str(error.context or "")
    if "alias" in problem + context or "cannot start any token" in problem:
        return _unquoted(line, place)
    if "while parsing a flow" in context and error.context_mark:
        opened = error.context_mark
        bracket = lines[opened.line][opened.column : opened.column + 1] if opened.line < len(lines) else ""
        if bracket in ("[", "{"):
            return f"{bracket!r} of line {opened.line + 1} is not closed, or a comma is missing"
    if "mapping values are not allowed" in problem and not _indented_deeper(lines, place):
        return "a second `: ` in one value; put the value in quotes"
    if "mapping values are not allowed" in problem or "<block end>" in problem:
        return _indentation(lines, place)
    return ""


def _unquoted(line: str, place: Position) -> str:
    sign = _MUST_BE_QUOTED.search(line, max(0, place.column - 2)) or _MUST_BE_QUOTED.search(line)
    if sign is None:
        return ""
    word = re.match(r"[^\s,\]}]+", line[sign.start() :])
    value = word[0] if word else sign[0]
    return f'a value that begins with {sign[0]} must be in quotes: "{value}"'


def _indented_deeper(lines: Sequence[str], place: Position) -> bool:
    """The line begins further right than the one before, which is whole by itself."""
    before = _line_before(lines, place)
    return before is not None and _indent(lines[place.line - 1]) > _indent(lines[before - 1])


def _indentation(lines: Sequence[str], place: Position) -> str:
    before = _line_before(lines, place)
    here = _spaces(_indent(lines[place.line - 1])) if place.line <= len(lines) else ""
    if before is None or not here:
        return ""
    other = _spaces(_indent(lines[before - 1]))
    return f"wrong indentation: {here} here, {other} in line {before}; keys of one level begin in one column"


def _line_before(lines: Sequence[str], place: Position) -> int | None:
    """The nearest line above that is neither empty nor a comment, counted from 1."""
    above = range(min(place.line - 1, len(lines)), 0, -1)
    return next((number for number in above if lines[number - 1].split("#")[0].strip()), None)


def _indent(line: str) -> int:
    """Spaces before the text; those before the key of a list item count, too."""
    return len(line) - len(re.sub(r"^[ ]*(- +)*", "", line))


def _spaces(count: int) -> str:
    return "1 space" if count == 1 else f"{count or 'no'} spaces"
