"""A run folder as a longer run would have left it: what was sampled, again and again, for hours nobody waits for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

GAP_NS = 200_000_000
"""Between two samples."""


def stretched(folder: Path, times: int, place: Path) -> Path:
    """A copy in `place` whose events and samples go on `times` as long; faults and steps are those of the first."""
    copy = place / folder.name
    shutil.copytree(folder, copy)
    events = _lines(folder / "events.jsonl")
    moments = [event["t_ns"] for event in events]
    span_ns = max(moments) - min(moments) + GAP_NS
    shifts = [turn * span_ns for turn in range(times)]
    _write(copy / "events.jsonl", (event | {"t_ns": event["t_ns"] + shift} for shift in shifts for event in events))
    head, *rows = (folder / "samples.csv").read_text(encoding="utf-8").splitlines()
    with (copy / "samples.csv").open("w", encoding="utf-8") as file:
        file.write(f"{head}\n")
        for shift in shifts:
            cells = (row.partition(",") for row in rows)
            file.writelines(f"{int(t_ns) + shift},{rest}\n" for t_ns, _, rest in cells)
    _end_later(copy / "history.jsonl", shifts[-1])
    return copy


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
