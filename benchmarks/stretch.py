"""A run folder as a longer run would have left it: what was sampled, again and again, for hours nobody waits for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

GAP_NS = 200_000_000
"""Between two samples."""
_TIMES = {
    "samples.csv": ("t_ns",),
    "ports.csv": ("t_ns",),
    "flows.csv": ("begin_ns", "end_ns"),
    "messages.csv": ("end_ns",),
}
"""The tables that go on, and their columns that are moments."""


def stretched(folder: Path, times: int, place: Path) -> Path:
    """A copy in `place` whose events, samples and flows go on `times` as long; faults and steps are those of the
    first."""
    copy = place / folder.name
    shutil.copytree(folder, copy)
    events = _lines(folder / "events.jsonl")
    moments = [event["t_ns"] for event in events]
    span_ns = max(moments) - min(moments) + GAP_NS
    shifts = [turn * span_ns for turn in range(times)]
    _write(copy / "events.jsonl", (event | {"t_ns": event["t_ns"] + shift} for shift in shifts for event in events))
    for name, columns in _TIMES.items():
        if (folder / name).exists():
            _repeat(folder / name, copy / name, columns, shifts)
    _end_later(copy / "history.jsonl", shifts[-1])
    return copy


def _repeat(path: Path, copy: Path, columns: tuple[str, ...], shifts: list[int]) -> None:
    """The rows of a table again for every shift of its times. A flow ends once: in the last of them."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    names = head.split(",")
    rows = [line.split(",") for line in lines]
    places = [names.index(column) for column in columns]
    ends = [names.index("last")] if "last" in names else []
    with copy.open("w", encoding="utf-8") as file:
        file.write(f"{head}\n")
        for shift in shifts:
            for row in rows:
                cells = row.copy()
                for place in places:
                    cells[place] = str(int(row[place]) + shift)
                for place in ends if shift != shifts[-1] else ():
                    cells[place] = "0"
                file.write(",".join(cells) + "\n")


def _end_later(path: Path, shift_ns: int) -> None:
    lines, over = _lines(path), False
    for line in lines:
        over = over or (line["op"], line["type"]) == ("workload", "ok")
        line["t_ns"] += shift_ns * over
    _write(path, lines)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, lines: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
