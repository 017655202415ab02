"""The text of a scenario: plain data with the position of every key, and changes from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

SCENARIO_FILE = "scenario.yaml"
"""The scenario as run, in its run folder."""
_BLOCK = ("|", ">")
"""What begins a text whose content is on the lines below (YAML 1.2, 8.1)."""
KeyPath = tuple[str | int, ...]
"""The path of a value: keys and list indices from the root."""


class Position(NamedTuple):
    """A place in a file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Override:
    """One changed value; `option` is the user's option (`--set seed=3`).

    `written`: its place in the file, None if it came from the command line. `source`: that file, None: the scenario's.
    """

    path: KeyPath
    value: Any
    option: str
    written: KeyPath | None = None
    source: Source | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Source:
    """A parsed file: `data` of plain Python types; `keys` and `values` map each path to its position."""

    file: str
    text: str
    data: Any
    keys: Mapping[KeyPath, Position] = field(default_factory=dict)
    values: Mapping[KeyPath, Position] = field(default_factory=dict)

    def position(self, path: KeyPath, at_key: bool, within: int) -> Position:
        """Position of the key, or of a character of the value."""
        return self.key_position(path) if at_key else self.value_position(path, within)

    def key_position(self, path: KeyPath) -> Position:
        """Position of the key (or list item), or of the nearest parent that has one."""
        return self._nearest(self.keys, path)

    def value_position(self, path: KeyPath, within: int = 0) -> Position:
        """Position of the value, or the key of the nearest parent that has one. `within`: of this character of its
        text, which the file may have on several lines."""
        place = self.values.get(path)
        if place is None:
            start = self._nearest(self.keys, path)
            return Position(start.line, start.column + within)
        value = self._value(path)
        return _place_within(self.text.splitlines(), place, value[:within]) if isinstance(value, str) else place

    def _value(self, path: KeyPath) -> Any:
        value = self.data
        for key in path:
            value = value[key]
        return value

    @staticmethod
    def _nearest(table: Mapping[KeyPath, Position], path: KeyPath) -> Position:
        places = (table.get(path[:size]) for size in range(len(path), 0, -1))
        return next((place for place in places if place), Position(1, 1))


def _place_within(lines: Sequence[str], start: Position, before: str) -> Position:
    """Where the character behind `before` is in a file, whose lines may be folded into one blank each (YAML 1.2, 6.5):
    they are told by the characters that are no blanks."""
    line, column = start.line - 1, start.column - 1
    if lines[line][column : column + len(before)] == before:
        return Position(start.line, start.column + len(before))
    if lines[line][column : column + 1] in _BLOCK:
        line, column = line + 1, 0
    left = sum(not character.isspace() for character in before)
    for number in range(line, len(lines)):
        for place in range(column, len(lines[number])):
            if not lines[number][place].isspace():
                if not left:
                    return Position(number + 1, place + 1)
                left -= 1
        column = 0
    return start


@dataclass(frozen=True)
class EffectiveText:
    """The text data of a loaded scenario. `write` makes its text of these two; it can be pickled."""

    source: Source
    overrides: Sequence[Override]
    write: Callable[[], str] = field(compare=False, repr=False)

    @cached_property
    def text(self) -> str:
        """The file with the changes applied. Made when it is wanted first: with changes that takes longer than all
        else about a scenario, and of most cells nobody asks for it."""
        return self.write()

    def line_of(self, path: KeyPath) -> int | None:
        """Line of `path` in the file, None if it is absent or replaced by the command line."""
        replaced = any(path[: len(change.path)] == change.path for change in self.overrides)
        place = self.source.keys.get(path)
        return None if replaced or place is None else place.line


class OverrideError(ValueError):
    """A path that does not fit the data; the text says why."""


WORDS_FOR = {"endpoint": "preset"}
"""Sections that may be a word alone, and the key whose value it is."""


def apply_override(data: Any, change: Override) -> None:
    """Write one value into nested mappings and lists, in place. A section that is a word alone keeps it, by its key.

    An index just past the end appends; a number below an absent key creates a list. Raises OverrideError if the path
    leads through a plain value or to an absent list index.
    """
    first, last = change.path[0], change.path[-1]
    if len(change.path) > 1 and first in WORDS_FOR and isinstance(data.get(first), str):
        data[first] = {WORDS_FOR[str(first)]: data[first]}
    for depth, (key, below) in enumerate(pairwise(change.path)):
        if isinstance(data, dict):
            data = data.setdefault(key, [] if isinstance(below, int) else {})
        else:
            data = _list(data, change.path[:depth])[_index(data, key, len(data) - 1)]
    if isinstance(data, dict):
        data[last] = change.value
        return
    items = _list(data, change.path[:-1])
    index = _index(items, last, len(items))
    items[index : index + 1] = [change.value]


def _list(data: Any, path: KeyPath) -> list[Any]:
    if not isinstance(data, list):
        raise OverrideError(f"{dotted(path)} is a plain value and has no keys")
    return data


def _index(items: Any, key: str | int, largest: int) -> int:
    if not isinstance(key, int):
        raise OverrideError(f"a list needs a number from 0 to {largest}, not {key!r}")
    if largest < 0:
        raise OverrideError("the list is empty; set its item 0 as a whole")
    if key > largest:
        raise OverrideError(f"the list has no item {key}; the largest number that fits is {largest}")
    return key


def dotted(path: KeyPath) -> str:
    """`faults.0.at`; `scenario` for the whole."""
    return ".".join(map(str, path)) or "scenario"


def prefixes(path: KeyPath) -> Iterator[KeyPath]:
    """The path itself, then each parent up to the root."""
    for size in range(len(path), -1, -1):
        yield path[:size]
