"""Traces of flows as text: CSV with the columns `start_s,src,dst,bytes`, and `name` where flows have one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

REQUIRED = ("start_s", "src", "dst", "bytes")
OPTIONAL = ("name",)
MOST_FLOWS = 200_000
MOST_START_S = 1e6
MOST_BYTES = 1 << 40
"""Of one flow."""
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?", re.ASCII)


class TraceMistake(ValueError):
    """What is wrong with a trace, and the line (from 1)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class TraceRow(NamedTuple):
    """A flow as the file has it: `start_s` after the begin of the trace, `line` of the file. `name` empty: none."""

    start_s: float
    src: str
    dst: str
    bytes: int
    name: str
    line: int


def read_trace(text: str) -> tuple[TraceRow, ...]:
    """All flows, by start; those of one moment in the order of the file. Empty lines and those that begin with `#` are
    passed over. Raises TraceMistake for the first mistake."""
    lines = (
        (number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")
    )
    number, header = next(lines, (1, ""))
    columns = _columns(number, [cell.strip() for cell in header.split(",")])
    rows = list(_rows(lines, columns))
    if not rows:
        raise TraceMistake(number, "has no flows; write a line for each, such as 0.01,h0,h4,65536")
    return tuple(sorted(rows, key=lambda row: row.start_s))


def _columns(line: int, names: Sequence[str]) -> Mapping[str, int]:
    """The place of each column."""
    example = f"the first line must name the columns, such as {','.join((*REQUIRED, *OPTIONAL))}"
    if unknown := next((name for name in names if name not in (*REQUIRED, *OPTIONAL)), None):
        raise TraceMistake(line, f"unknown column {unknown!r}; {example}")
    if missing := next((name for name in REQUIRED if name not in names), None):
        raise TraceMistake(line, f"the column {missing!r} is missing; {example}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise TraceMistake(line, f"the column {twice!r} is there twice")
    return {name: place for place, name in enumerate(names)}


def _rows(lines: Iterator[tuple[int, str]], columns: Mapping[str, int]) -> Iterator[TraceRow]:
    for count, (number, line) in enumerate(lines):
        if count == MOST_FLOWS:
            raise TraceMistake(number, f"more than {MOST_FLOWS} flows; cut the trace")
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(columns):
            raise TraceMistake(number, f"has {len(cells)} cells, and the first line names {len(columns)} columns")
        yield _row(number, {name: cells[place] for name, place in columns.items()})


def _row(line: int, cells: Mapping[str, str]) -> TraceRow:
    src, dst = cells["src"], cells["dst"]
    if not src or not dst:
        raise TraceMistake(line, f"{'dst' if src else 'src'} is empty; write the name of a host, such as h0")
    if src == dst:
        raise TraceMistake(line, f"{src} cannot send to itself")
    start_s, size = _start_s(line, cells["start_s"]), _size(line, cells["bytes"])
    return TraceRow(start_s, src, dst, size, cells.get("name", ""), line)


def _start_s(line: int, cell: str) -> float:
    value = float(cell) if _NUMBER.fullmatch(cell) else -1.0
    if not isfinite(value) or not 0 <= value <= MOST_START_S:
        wanted = f"a number of seconds from 0 to {MOST_START_S:.0f}, without a unit"
        raise TraceMistake(line, f"start_s is {cell!r}, and must be {wanted}")
    return value


def _size(line: int, cell: str) -> int:
    value = int(cell) if _WHOLE.fullmatch(cell) else 0
    if not 1 <= value <= MOST_BYTES:
        wanted = f"a whole number from 1 to {MOST_BYTES}, without a unit"
        raise TraceMistake(line, f"bytes is {cell!r}, and must be {wanted}")
    return value
