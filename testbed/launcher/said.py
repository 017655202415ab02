"""Lines of a program: a JSON object each, of bounded depth."""

from __future__ import annotations

import json
import re
from typing import Any

MOST_DEPTH = 64
"""Brackets within brackets of a line."""
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class NotAnObject(ValueError):
    """A line that is something else; the text says what, and where; `kind` what alone."""

    def __init__(self, kind: str, where: str = "") -> None:
        super().__init__(f"{kind}: {where}" if where else kind)
        self.kind = kind


def read_object(line: bytes | str) -> dict[str, Any]:
    """Raises NotAnObject."""
    text = line if isinstance(line, str) else line.decode(errors="replace")
    if _is_deep(text):
        raise NotAnObject(f"JSON of more than {MOST_DEPTH} brackets within brackets")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise NotAnObject("not JSON", str(error)) from None
    if not isinstance(found, dict):
        raise NotAnObject("not a JSON object")
    return found


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > MOST_DEPTH:
            return True
    return False
