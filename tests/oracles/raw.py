"""The files of a run as rows and lines, and its windows, read with the standard library alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

Row = dict[str, Any]
AFTERMATH_RTTS = 10


class Window(NamedTuple):
    """A part of a run: its words in an expectation, and which moments and stretches of time belong to it. `from` one
    time to another has what lies wholly inside, `during` a fault what overlaps it."""

    words: str
    spans: Sequence[tuple[float, float]]

    def holds(self, t_ns: float) -> bool:
        """Whether a moment belongs to it."""
        return any(begin <= t_ns <= end for begin, end in self.spans)

    def counts(self, since: float, until: float) -> bool:
        """Whether a stretch of time does."""
        if self.words.startswith("during"):
            return any(begin <= until and since <= end for begin, end in self.spans)
        return any(begin <= since and until <= end for begin, end in self.spans)


class Raw:
    """One run."""

    def __init__(self, folder: Path) -> None:
        """Reads a file when something of it is asked for."""
        self.folder = folder

    @cached_property
    def scenario(self) -> Row:
        """As it was written."""
        found: Row = YAML(typ="safe").load((self.folder / "scenario.yaml").read_text())
        return found

    @cached_property
    def history(self) -> list[Row]:
        """What was done, when."""
        return self._lines("history.jsonl")

    @cached_property
    def events(self) -> list[Row]:
        """What endpoints said."""
        return self._lines("events.jsonl")

    @cached_property
    def counters(self) -> Row:
        """counters.json."""
        found: Row = json.loads((self.folder / "counters.json").read_text())
        return found

    @cached_property
    def environment(self) -> Row:
        """environment.json."""
        found: Row = json.loads((self.folder / "environment.json").read_text())
        return found

    def table(self, name: str) -> list[Row]:
        """Rows of a CSV file, numbers as numbers; none where there is no such file."""
        file = self.folder / f"{name}.csv"
        if not file.exists():
            return []
        with file.open(newline="") as lines:
            return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(lines)]

    def named(self, event: str) -> list[Row]:
        """Events of one kind."""
        return [line for line in self.events if line["event"] == event]

    @cached_property
    def start_ns(self) -> int:
        """When the workload began."""
        return next(int(line["t_ns"]) for line in self.history if line["op"] == "workload")

    @cached_property
    def done_ns(self) -> int | None:
        """When it was done; None if it never was."""
        ends = [line["t_ns"] for line in self.history if line["op"] == "workload" and line["type"] == "ok"]
        return ends[0] if ends else None

    @cached_property
    def hosts(self) -> list[str]:
        """All of them."""
        return list(self.counters["hosts"])

    @cached_property
    def faults(self) -> list[tuple[str, int, int, float]]:
        """Name of each occurrence, when it was tried and in place, and when it was healed: never is infinite."""
        begun: dict[tuple[str, int], int] = {}
        found: dict[tuple[str, int], list[Any]] = {}
        for line in self.history:
            key = (line.get("fault", ""), line.get("cycle", 0))
            if line["op"] == "inject" and line["type"] == "invoke":
                begun.setdefault(key, line["t_ns"])
            if line["op"] == "inject" and line["type"] == "ok":
                found[key] = [begun.get(key, line["t_ns"]), line["t_ns"], float("inf")]
            if line["op"] == "heal" and line["type"] == "ok" and key in found:
                found[key][2] = line["t_ns"]
        return [(name, *times) for (name, _), times in found.items()]

    def windows(self) -> list[Window]:
        """The run, each fault, all faults, and the middle third of the workload."""
        parts = [Window("", [(float("-inf"), float("inf"))])]
        names = dict.fromkeys(name for name, *_ in self.faults)
        parts += [self._during(f"during {name}", [name]) for name in names]
        if len(names) > 1:
            parts.append(self._during("during faults", list(names)))
        if self.done_ns is not None:
            third_ms = (self.done_ns - self.start_ns) // 3_000_000
            begin, end = self.start_ns + third_ms * 10**6, self.start_ns + 2 * third_ms * 10**6
            parts.append(Window(f"from {third_ms}ms to {2 * third_ms}ms", [(begin, end)]))
        return parts

    def _during(self, words: str, names: list[str]) -> Window:
        after = AFTERMATH_RTTS * self.environment["base_rtt_ns"]
        spans = [(tried, healed + after) for name, tried, _, healed in self.faults if name in names]
        return Window(words, spans)

    def _lines(self, name: str) -> list[Row]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
