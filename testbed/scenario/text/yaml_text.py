"""YAML 1.2 text -> plain data with positions. Every kind of invalid text becomes a Problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from sys import float_info
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from mrc_testbed.testbed.errors import Problem, ScenarioError
from mrc_testbed.testbed.inputs import input_bytes
from mrc_testbed.testbed.scenario.text.source import KeyPath, Position, Source, dotted
from mrc_testbed.testbed.scenario.text.yaml_advice import yaml_advice

MAX_BYTES = 1 << 20
"""Scenarios are written by hand; a larger file is a mistake."""
MAX_NODES = 20_000
"""Aliases may repeat parts; this stops texts that repeat themselves exponentially."""
MAX_DEPTH = 16
"""Deeper than any scenario needs, and far below Python's own limit."""

STUMBLES = (ValueError, TypeError, AttributeError, LookupError, AssertionError, NotImplementedError)
"""What ruamel.yaml raises in its own code over some texts, besides YAMLError."""

_TAG = "tag:yaml.org,2002:"


def read_source(path: Path) -> Source:
    """Read and parse a file. Raises ScenarioError."""
    return parse_source(_read_text(path), str(path))


def parse_source(text: str, file: str) -> Source:
    """Parse a text; `file` is the name for messages. Raises ScenarioError with every YAML problem."""
    root = _compose(text, file)
    if root is None:
        raise _alone(file, Position(1, 1), "is empty; a scenario has at least name and workload")
    reader = _Reader(file)
    data = reader.read(root, ())
    if not isinstance(root, MappingNode):
        reader.complain(root, (), "must be a mapping of keys such as `name: quickstart`")
    if reader.problems:
        raise ScenarioError(reader.problems)
    return Source(file, text, data, reader.keys, reader.values)


def parse_value(text: str) -> Any:
    """The plain value of a small YAML text from the command line. Raises ScenarioError."""
    root = _compose(text, "value")
    if root is None:
        return None
    reader = _Reader("value")
    value = reader.read(root, ())
    if reader.problems:
        raise ScenarioError(reader.problems)
    return value


def _read_text(path: Path) -> str:
    file = str(path)
    try:
        raw = input_bytes(path, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _alone(file, Position(1, 1), f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > MAX_BYTES:
        raise _alone(file, Position(1, 1), f"is too long; a scenario has at most {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        raise _alone(file, Position(line, column), f"byte {raw[error.start]:#04x} is not UTF-8 text") from None


def _compose(text: str, file: str) -> Node | None:
    try:
        return _nodes(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        raise _alone(file, place, _syntax(error, text, place)) from None
    except YAMLError as error:
        offset = getattr(error, "position", 0)
        before = text[:offset] if isinstance(offset, int) else ""
        place = Position(before.count("\n") + 1, offset - before.rfind("\n") if before else 1)
        raise _alone(file, place, "holds a character that YAML does not allow") from None
    except RecursionError:
        raise _alone(file, Position(1, 1), "is nested too deeply") from None
    except STUMBLES as error:  # for the user it is the text that is wrong
        raise _alone(file, Position(1, 1), f"is not valid YAML ({error})") from None


@lru_cache(maxsize=4)
def _nodes(text: str) -> Node | None:
    """Kept for a while: nobody changes a node, and a file is read again for its cells, and beside its starter."""
    node: Node | None = YAML(typ="safe", pure=True).compose(text)
    return node


def _syntax(error: MarkedYAMLError, text: str, place: Position) -> str:
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: place.column]:
        return "not valid YAML: a tab; indent with spaces"
    if advice := yaml_advice(error, lines, place):
        return f"not valid YAML: {advice}"
    what = re.sub(r"<([^<>]*)>", r"\1", str(error.problem or error.context or "cannot be parsed"))
    context = f" ({error.context})" if error.problem and error.context else ""
    return f"not valid YAML: {what}{context}"


def _alone(file: str, place: Position, message: str) -> ScenarioError:
    return ScenarioError([Problem(file, place.line, place.column, "scenario", message)])


class _Reader:
    """Walks a node graph once, collecting data, positions and problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.keys: dict[KeyPath, Position] = {}
        self.values: dict[KeyPath, Position] = {}
        self.problems: list[Problem] = []
        self._nodes = 0
        self._open: set[int] = set()

    def complain(self, node: Node, path: KeyPath, message: str) -> None:
        place = _start(node)
        self.problems.append(Problem(self.file, place.line, place.column, dotted(path), message))

    def read(self, node: Node, path: KeyPath) -> Any:
        self._nodes += 1
        self.values[path] = _start(node)
        if self._nodes == MAX_NODES:
            self.complain(node, path, f"has more than {MAX_NODES} values")
        if self._nodes >= MAX_NODES:
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if len(path) > MAX_DEPTH:
            self.complain(node, path[:MAX_DEPTH], "is nested too deeply")
            return None
        return self._collection(node, path)

    def _collection(self, node: Node, path: KeyPath) -> Any:
        if id(node) in self._open:
            self.complain(node, path, "contains itself")
            return None
        if _short_tag(node) not in ("map", "seq"):
            self.complain(node, path, f"the tag {_short_tag(node)} is not supported")
        self._open.add(id(node))
        value: Any = None
        if isinstance(node, MappingNode):
            value = self._mapping(node, path)
        elif isinstance(node, SequenceNode):
            value = self._list(node, path)
        self._open.discard(id(node))
        return value

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.complain(key_node, path, "a key must be a single word")
                continue
            key = str(key_node.value)
            if key.startswith("-"):
                self.complain(key_node, path, f"a list item needs a space after its dash: `- {key[1:]}`")
                continue
            if key in data:
                self.complain(key_node, (*path, key), f"duplicate key {key!r}")
                continue
            self.keys[(*path, key)] = _start(key_node)
            data[key] = self.read(value_node, (*path, key))
        return data

    def _list(self, node: SequenceNode, path: KeyPath) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self.keys[(*path, index)] = _start(item)
            items.append(self.read(item, (*path, index)))
        return items

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        if node.style in ("'", '"') and path:
            # Columns inside the text count from behind the quote.
            start = _start(node)
            self.values[path] = Position(start.line, start.column + 1)
        tag = _short_tag(node)
        text = str(node.value)
        if tag in ("str", "timestamp", "value", "merge"):
            return text
        if tag not in _SCALARS:
            self.complain(node, path, f"the tag {tag} is not supported")
            return None
        if tag == "bool" and text.lower() not in _BOOLS:  # of YAML 1.1, or by a tag
            self.complain(node, path, f"must be true or false, or text in quotes; got {text}")
            return None
        return _SCALARS[tag](text)


def _start(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _short_tag(node: Node) -> str:
    return str(node.tag).removeprefix(_TAG)


def _int(text: str) -> int | str:
    """Text stays what no float holds: such a number is a mistake, and some of its digits cannot even be shown."""
    for base in (0, 10):
        try:
            value = int(text, base)
        except ValueError:
            continue
        return value if value.bit_length() < float_info.max_exp else text
    return text


def _float(text: str) -> float | str:
    try:
        return float(text.replace(".inf", "inf").replace(".nan", "nan").replace(".Inf", "inf").replace(".NaN", "nan"))
    except ValueError:
        return text


_BOOLS = {"true": True, "false": False}
_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "int": _int,
    "float": _float,
    "bool": lambda text: _BOOLS[text.lower()],
    "null": lambda text: None,
}
