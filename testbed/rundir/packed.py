"""Rows of a table in little memory: each column is an array, and a row is made when somebody asks for it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

from mrc_testbed.testbed.inputs import BYTE_ORDER_MARK
from mrc_testbed.testbed.rundir.files import RecordError, line_blocks
from mrc_testbed.testbed.rundir.tables import CsvTable, RowT

_SHORT, _LONG, _INDEX, _REAL = "i", "q", "I", "d"
_TYPECODES = {"text": _INDEX, "number": _REAL}


class PackedRows(Generic[RowT]):
    """The rows of a table in order, read-only: 4 bytes a text or a number, 8 in a column that has a larger one."""

    def __init__(self, table: CsvTable[RowT]) -> None:
        self.names = table.names
        self._row = table.row
        self._columns: list[array[Any]] = [array(_TYPECODES.get(column.type, _SHORT)) for column in table.columns]
        self._text_places = [place for place, column in enumerate(table.columns) if column.type == "text"]
        self._texts: dict[str, int] = {}
        self._by_index: list[str] = []

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, place: int) -> RowT:
        cells: list[float | str] = [column[place] for column in self._columns]
        for text in self._text_places:
            cells[text] = self._by_index[self._columns[text][place]]
        return self._row(*cells)

    def __iter__(self) -> Iterator[RowT]:
        return map(self._row, *(self.column(name) for name in self.names))

    def column(self, name: str) -> Iterable[Any]:
        """The values of one column."""
        found = self._columns[self.names.index(name)]
        return map(self._by_index.__getitem__, found) if found.typecode == _INDEX else found

    def columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Of each row the values of these columns, in a third of the time that whole rows take."""
        return zip(*map(self.column, names), strict=True)

    def add(self, columns: Sequence[Sequence[str]]) -> None:
        """Rows behind the others, as one sequence of cells a column. Raises ValueError or OverflowError, and has then
        changed nothing."""
        made = [self._made(*each) for each in zip(self._columns, columns, strict=True)]
        for place, values in enumerate(made):
            if values.typecode != self._columns[place].typecode:
                self._columns[place] = array(values.typecode, self._columns[place])
            self._columns[place].extend(values)

    def _made(self, own: array[Any], cells: Sequence[str]) -> array[Any]:
        if own.typecode == _REAL:
            return array(_REAL, map(float, cells))
        if own.typecode != _INDEX:
            return _numbers(own.typecode, cells)
        for text in sorted(set(cells) - self._texts.keys()):
            self._texts[text] = len(self._by_index)
            self._by_index.append(text)
        return array(_INDEX, map(self._texts.__getitem__, cells))


def _numbers(typecode: str, cells: Sequence[str]) -> array[int]:
    """Longer ones than in the column so far where they have to be. Raises ValueError, OverflowError."""
    try:
        return array(typecode, map(int, cells))
    except OverflowError:
        return array(_LONG, map(int, cells))


def packed_rows(folder: Path, table: CsvTable[RowT]) -> PackedRows[RowT]:
    """All rows of a table; none if the run has no such file. Raises RecordError."""
    found = PackedRows(table)
    for header, lines in _batches(folder / table.file):
        _fill(found, folder / table.file, header, lines)
    return found


def read_rows(folder: Path, table: CsvTable[RowT]) -> Iterator[RowT]:
    """The same, one row after the other, and none is kept. Raises RecordError."""
    for header, lines in _batches(folder / table.file):
        batch = PackedRows(table)
        _fill(batch, folder / table.file, header, lines)
        yield from batch


def _batches(path: Path) -> Iterator[tuple[Sequence[str], list[str]]]:
    """The names of the columns, and some lines."""
    header: Sequence[str] = ()
    for block in line_blocks(path):
        # An incomplete number still looks like a number, so only complete lines count: what follows the last end is
        # left out. Names and numbers only, never quoted: the csv module takes several times as long.
        *lines, _ = b"".join(block).decode(errors="replace").replace("\r\n", "\n").split("\n")
        if not header and lines:
            header = lines.pop(0).removeprefix(BYTE_ORDER_MARK).split(",")
        if lines:
            yield header, lines


def _fill(found: PackedRows[RowT], path: Path, header: Sequence[str], lines: Sequence[str]) -> None:
    """Raises RecordError."""
    try:
        named = _cells(header, lines)
        found.add([named[column] for column in found.names])
    except (KeyError, ValueError, OverflowError):  # or some rows have more cells than they need
        for line in lines:
            _add_one(found, path, dict(zip(header, line.split(","), strict=False)))


def _cells(header: Sequence[str], lines: Sequence[str]) -> dict[str, list[str]]:
    """By column. Raises ValueError if a line has too few or too many."""
    width = len(header)
    if any(line.count(",") != width - 1 for line in lines):
        raise ValueError("not a cell for each column")
    cells = ",".join(lines).split(",")  # faster than each line on its own
    return {name: cells[place::width] for place, name in enumerate(header)}


def _add_one(found: PackedRows[RowT], path: Path, cells: Mapping[str, str]) -> None:
    """Raises RecordError that names the row."""
    try:
        found.add([[cells[column]] for column in found.names])
    except (KeyError, ValueError, OverflowError) as error:
        raise RecordError(path, f"a line lacks or misspells {error}: {cells}") from None
