"""docs/results.md as data, and a run folder held against it: every file, and every key and type in the JSON files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
COLUMN_HEAD = ["column", "type", "unit", "meaning"]
KEY_HEAD = ["key", "type", "meaning"]
FILES_HEAD = ["file", "what it is for", "absent"]
FRAME_HEAD = ["frame", "from", "a row is", "columns"]
EVENT_LIST = "More keys, by event:"
LENGTH = {"ms": "number?", "rtt": "number?", "packets": "number?", "why": "text"}
HISTORY = "history.jsonl"
MAP = "map.jsonl"
EVENTS = "events.jsonl"

_FITS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "flag": lambda value: isinstance(value, bool),
}


def section(title: str) -> str:
    """The text below `## title`."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found, f"docs/results.md has no section {title}"
    return found[1]


def summary() -> list[str]:
    """The lines of the summary that the page shows."""
    return _shown("The summary")


def display() -> list[str]:
    """The lines of the live display that the page shows."""
    return _shown("The live display")


def _shown(title: str) -> list[str]:
    found = re.search(r"^```\n(.*?)^```$", section(title), re.M | re.S)
    assert found, f"docs/results.md shows nothing under {title}"
    return found[1].splitlines()


def table(text: str, head: list[str]) -> list[list[str]]:
    """The rows of the first table with this head, a list of cells each."""
    lines = iter(text.splitlines())
    for line in lines:
        if _cells(line) == head:
            next(lines)
            return [cells for line in lines if (cells := _until_empty(line, lines))]
    raise AssertionError(f"no table {' | '.join(head)}")


def items(text: str, head: str) -> list[str]:
    """The items of the list below this line."""
    _, found, below = text.partition(f"{head}\n\n- ")
    assert found, f"no list {head}"
    return below.partition("\n\n")[0].split("\n- ")


def words(cell: str) -> list[str]:
    """What is in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def columns(title: str) -> list[tuple[str, str, str]]:
    """(name, type, unit) of the columns of a file."""
    return [(words(name)[0], words(kind)[0], unit) for name, kind, unit, _ in table(section(title), COLUMN_HEAD)]


def keys(title: str) -> list[tuple[str, str]]:
    """(key, type) of a JSON file, in order."""
    return [(words(key)[0], words(kind)[0]) for key, kind, _ in table(section(title), KEY_HEAD)]


def undocumented(folder: Path) -> list[str]:
    """What is in a run folder and not on the page, or of another type than there."""
    known = {words(file)[0] for file, _, _ in table(PAGE.read_text(encoding="utf-8"), FILES_HEAD)}
    names = {f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir()}
    found = [f"file {name}" for name in sorted(names - known)]
    for path in sorted(folder.glob("*.json")):
        if path.name in known and path.name != "owner.json":
            content = json.loads(path.read_text(encoding="utf-8"))
            found += [f"{path.name}: {wrong}" for wrong in _wrong(content, keys(path.name))]
    return found + [f"{EVENTS}: {wrong}" for wrong in _wrong_events(folder)] + _wrong_lines(folder)


def _wrong(content: Any, known: list[tuple[str, str]]) -> list[str]:
    patterns = [(re.compile(_pattern(key)), kind) for key, kind in known]
    found = {}
    for path, value in _leaves(content):
        kinds = [kind for pattern, kind in patterns if pattern.fullmatch(path)]
        if not any(_fits(value, kind) for kind in kinds):
            found[re.sub(r"\d+", "N", path)] = f"{path} = {value!r}, documented: {kinds or 'no'}"
    return list(found.values())


def _pattern(key: str) -> str:
    """Keys of maps may have dots and slashes in them."""
    parts = re.split(r"(<[^>]+>)", key)
    return "".join(r"[^\x00]+" if part.startswith("<") else re.escape(part) for part in parts)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and not LENGTH.keys() >= value.keys():
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, f"{path}[]")
    elif value != {}:
        yield path, value


def _fits(value: Any, kind: str) -> bool:
    if kind == "length":
        return isinstance(value, dict) and all(_fits(inner, LENGTH[key]) for key, inner in value.items())
    return (value is None and kind.endswith("?")) or _FITS[kind.removesuffix("?")](value)


def _wrong_events(folder: Path) -> list[str]:
    more = {name: set(keys_) for name, *keys_ in map(words, items(section(EVENTS), EVENT_LIST))}
    types = {name: kind for name, kind, _ in columns(EVENTS)}
    found = set()
    for event in _lines(folder / EVENTS):
        kind = event["event"]
        found |= {f"{kind} has {key}" for key in event.keys() - more.get(kind, set()) - {"event", "t_ns", "host"}}
        found |= {
            f"{kind}.{key} = {value!r}"
            for key, value in event.items()
            if key in types and not (_fits(value, types[key]) or (value is None and key == "peer"))
        }
    return sorted(found)


def _wrong_lines(folder: Path) -> list[str]:
    lists = {HISTORY: {"links", "hosts"}, MAP: {"alike", "evidence", "hosts"}}
    found = set()
    for file in (name for name in lists if (folder / name).exists()):
        types = {name: kind for name, kind, _ in columns(file)}
        found |= {
            f"{file}: {key} = {value!r}"
            for line in _lines(folder / file)
            for key, value in line.items()
            if not (isinstance(value, list) if key in lists[file] else key in types and _fits(value, types[key]))
        }
    return sorted(found)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def _until_empty(line: str, rest: Iterator[str]) -> list[str]:
    """A line without cells ends the table."""
    cells = _cells(line)
    if not cells:
        list(rest)
    return cells
