"""Short forms of keys and values for the names of cells and groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.scenario.text.source import KeyPath

LONGEST_VALUE = 40
"""Characters; longer values are cut in names."""


def key_path(dotted: str) -> KeyPath:
    """`faults.0.at` as a path; numbers are indices of lists."""
    return tuple(
        int(part) if part.isascii() and part.isdigit() and len(part) < 9 else part for part in dotted.split(".")
    )


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Each dotted key by as many last words as needed to be unique: `planes`, `faults.1.loss`, `expect.0`."""
    return {key: next((name for name in _endings(key) if _alone(name, key, keys)), key) for key in keys}


def _endings(key: str) -> Iterable[str]:
    """Endings that begin with a word, shortest first."""
    parts = key.split(".")
    return (".".join(parts[begin:]) for begin in range(len(parts) - 1, -1, -1) if not parts[begin].isdigit())


def _alone(name: str, key: str, keys: Iterable[str]) -> bool:
    return not any(other != key and f".{other}".endswith(f".{name}") for other in keys)


def whole_value(value: Any) -> str:
    """A value as written in one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace('"', "")


def value_text(value: Any) -> str:
    """The same, cut if long: to be shown, not compared."""
    text = whole_value(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def distinct_texts(values: Iterable[Any]) -> Mapping[str, str]:
    """What to show of the values of one key, by the whole value: cut where all stay different, else whole."""
    cut = {whole_value(value): value_text(value) for value in values}
    return cut if len({*cut.values()}) == len(cut) else {value: value for value in cut}
