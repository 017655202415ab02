"""A YAML file read key by key, every mistake with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import Problem, ScenarioError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.text.source import KeyPath, Source, dotted
from mrc_testbed.testbed.scenario.text.yaml_text import read_source


@dataclass(slots=True)
class YamlFile:
    """A parsed file, and the mistakes found in it so far."""

    source: Source
    problems: list[Problem] = field(default_factory=list)

    @staticmethod
    def read(path: Path) -> YamlFile:
        """Raises ScenarioError for a file that cannot be read or is no mapping."""
        try:
            return YamlFile(read_source(path))
        except ScenarioError as error:
            raise ScenarioError([_renamed(one, path.name) for one in error.problems]) from None

    @property
    def top(self) -> Keys:
        """Its outermost keys."""
        return Keys(self, (), self.source.data)

    def complain(self, path: KeyPath, message: str, at_key: bool = False, column: int = 0) -> None:
        """Note a mistake at a key, or at its value; `column` counts from 0 inside the value's text."""
        place = self.source.position(path, at_key, column)
        where = dotted(path) if path else self.name
        self.problems.append(Problem(self.source.file, place.line, place.column, where, message))

    @property
    def name(self) -> str:
        """Its name without its folder."""
        return Path(self.source.file).name

    def line_of(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest one above it."""
        return self.source.key_position(path).line


def _renamed(problem: Problem, name: str) -> Problem:
    """The words of a scenario file, for another file."""
    if problem.path != "scenario":
        return problem
    return replace(problem, path=name, message=problem.message.partition("; a scenario")[0])


@dataclass(slots=True)
class Keys:
    """A mapping at `path` of a file; takes note of what was asked for. A value of the wrong type is noted, and then
    counts as absent."""

    file: YamlFile
    path: KeyPath
    data: dict[str, Any]
    _asked: set[str] = field(default_factory=set)

    def complain(self, message: str, key: str | None = None, at_key: bool = False, column: int = 0) -> None:
        """Note a mistake in the value of a key; without a key in the mapping itself."""
        self.file.complain(self.path if key is None else (*self.path, key), message, at_key or key is None, column)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self._asked.add(key)
        return key in self.data

    def text(self, key: str, example: str, needed: bool = False) -> str:
        """A text on one line or more; a number counts as the text that it is written as."""
        value = self._value(key, example, needed)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            self.complain(f"must be text, such as {example}", key)
            return ""
        return str(value)

    def whole(self, key: str, usual: int, least: int = 0) -> int:
        """A whole number of at least that."""
        value = self._value(key, str(max(usual, least)), False)
        if value is None:
            return usual
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.complain(f"must be a whole number of at least {least}", key)
            return usual
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where it is absent."""
        value = self._value(key, "true", False)
        if value is not None and not isinstance(value, bool):
            self.complain("must be true or false", key)
        return value is True

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """A text, or a list of texts."""
        value = self._value(key, example, False)
        items = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in items):
            self.complain(f"must be a text or a list of texts, such as {example}", key)
            return ()
        return tuple(map(str, items))

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self._value(key, "a list", False)
        if value is not None and not isinstance(value, list):
            self.complain("must be a list: begin each entry with a dash", key)
        return value if isinstance(value, list) else []

    def below(self, key: str | int, example: str) -> Keys | None:
        """A mapping."""
        value = self.data.get(key) if isinstance(key, str) else None
        if isinstance(key, str) and self._value(key, example, False) is None:
            return None
        if not isinstance(value, dict):
            self.complain(f"must be a mapping, such as {example}", str(key))
            return None
        return Keys(self.file, (*self.path, key), value)

    def refuse_others(self) -> None:
        """Note every key that nobody has asked for."""
        for key in self.data.keys() - self._asked:
            hint = did_you_mean(key, self._asked) or f"; there are {', '.join(sorted(self._asked))}"
            self.complain(f"unknown key{hint}", key, at_key=True)

    def _value(self, key: str, example: str, needed: bool) -> Any:
        if not self.has(key):
            if needed:
                self.complain(f"lacks {key}, such as `{key}: {example}`")
            return None
        if self.data[key] is None:
            self.complain(f"has no value; write one, such as {example}", key)
        return self.data[key]


def only_one(keys: Keys, known: Sequence[str], noun: str) -> str | None:
    """The one of these keys that is there; none or several is noted."""
    there = [key for key in known if keys.has(key)]
    if len(there) == 1:
        return there[0]
    if there:
        keys.complain(f"has two kinds, {there[0]} and {there[1]}; write one", there[1], at_key=True)
    else:
        keys.complain(f"does not say what kind of {noun} it is; one of {', '.join(known)}")
    return None
