"""What the runner hears of a virtual host: what a line of JSON of it would read as, without the line."""

from __future__ import annotations

import json
from typing import Any

_AS_THEY_ARE: tuple[type, ...] = (int, str, float, bool, type(None))


def heard(value: Any) -> Any:
    """A copy as `json.loads(json.dumps(value))` makes it. Raises TypeError for what JSON has no text for."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        return _table(value)
    if kind is list or kind is tuple:
        return [heard(each) for each in value]
    return json.loads(json.dumps(value))


def _table(fields: dict[Any, Any]) -> Any:
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if type(key) is not str:
            return json.loads(json.dumps(fields))
        found[key] = heard(value)
    return found
