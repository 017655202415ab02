"""Files of a run folder as frames. Skips a last line cut off by a kill; a missing file gives no rows."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrc_testbed.testbed.rundir.files import MOST_TABLE_BYTES, RecordError, open_plain, parse_json, text_lines
from mrc_testbed.testbed.rundir.tables import CLOCK, DTYPES, NS, Table

if TYPE_CHECKING:
    import pandas as pd

_CHUNK_ROWS = 4096
"""Rows after which counts are packed into arrays: as Python numbers those of a long run would fill the memory."""
_EVENT_WITHIN = 80
"""Length of the line start that contains an event's name."""


def csv_frame(folder: Path, table: Table, start_ns: int | None) -> pd.DataFrame:
    """A CSV file. Raises RecordError if it is malformed."""
    import numpy as np
    import pandas as pd

    path = folder / table.file
    dtypes = {column.name: DTYPES[column.type] for column in table.columns}
    source = _whole(path)
    if source is None:
        return rows_frame(table, (), start_ns, path)
    try:
        with np.errstate(invalid="raise"):  # else infinity becomes some number
            frame = pd.read_csv(source, usecols=list(dtypes), dtype=dtypes, na_filter=False)
    except (ValueError, ArithmeticError) as error:
        raise RecordError(path, f"cannot be read as a table: {' '.join(str(error).split())}") from None
    return _finished(table, frame, start_ns)


def rows_frame(table: Table, rows: Iterable[Mapping[str, Any]], start_ns: int | None, path: Path) -> pd.DataFrame:
    """Rows as a frame; missing values become NA. Raises RecordError for wrong types."""
    import pandas as pd

    with _telling(path):
        kept = list(rows)
    columns = {}
    for column in table.columns:
        missing = "" if column.type == "text" else None
        values = [missing if (value := row.get(column.name)) is None else value for row in kept]
        try:
            columns[column.name] = pd.Series(values, dtype=DTYPES[column.type])
        except (TypeError, ValueError, OverflowError) as error:
            raise RecordError(path, f"{column.name} is not what it should be: {error}") from None
    return _finished(table, pd.DataFrame(columns), start_ns)


def counted_frame(
    table: Table, rows: Iterable[tuple[Sequence[Any], Mapping[str, int]]], start_ns: int | None, path: Path
) -> pd.DataFrame:
    """Rows of fixed columns and counts by name; all rows must have the same names in the same order. Raises
    RecordError."""
    import numpy as np
    import pandas as pd

    own: list[Mapping[str, Any]] = []
    names: list[str] = []
    arrays, chunk = [], []
    with _telling(path):
        for values, counts in rows:
            names = names or list(counts)
            if list(counts) != names:
                raise RecordError(path, f"{' '.join(map(str, values))}: other counts than in the row before")
            own.append(dict(zip((column.name for column in table.columns), values, strict=True)))
            chunk.append([*counts.values()])
            if len(chunk) == _CHUNK_ROWS:
                arrays.append(np.array(chunk, dtype="int64"))
                chunk = []
        if chunk:
            arrays.append(np.array(chunk, dtype="int64"))
    head = rows_frame(table, own, start_ns, path)
    if not names:
        return head
    counted = pd.DataFrame(np.concatenate(arrays), columns=names)
    return pd.concat([head, counted], axis=1)


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Adds the file name to errors; rows are parsed while they are read."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordError(path, f"is not what it should be: {type(error).__name__}: {error}") from None


def event_lines(path: Path, wanted: str = "", but_not: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Objects of events.jsonl of one event, or of all except some; skipped ones, the majority, are not parsed.

    Raises RecordError for an invalid line before the last one.
    """
    marks = [f'"{name}"' for name in but_not]
    number, torn = 0, 0
    for number, line in enumerate(text_lines(path), 1):
        if torn:
            raise RecordError(path, f"line {torn} is not a JSON object")
        begin = line[:_EVENT_WITHIN]
        if (wanted and f'"{wanted}"' not in begin) or any(mark in begin for mark in marks):
            continue
        try:
            event = parse_json(line)
        except ValueError:
            torn = number
            continue
        if not isinstance(event, dict):
            torn = number
        elif event.get("event") not in but_not and wanted in ("", event.get("event")):
            yield event


def _whole(path: Path) -> io.BytesIO | None:
    """All complete lines of the file as it is now; it may still be growing. None without any."""
    try:
        with open_plain(path, MOST_TABLE_BYTES) as file:
            content = file.read(MOST_TABLE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror}") from None
    whole = content[: content.rfind(b"\n") + 1]
    return io.BytesIO(whole) if whole else None


def _finished(table: Table, frame: pd.DataFrame, start_ns: int | None) -> pd.DataFrame:
    """Adds columns in seconds, relative to the workload's start for moments, in schema order."""
    for column in table.columns:
        if column.unit == CLOCK:
            if column.type == "int?":
                frame[column.name] = frame[column.name].mask(frame[column.name] == 0)
            since = frame[column.name] - (start_ns or 0)
            seconds = since.astype("float64") / 1e9
            frame[column.in_seconds] = seconds if start_ns is not None else float("nan")
        elif column.unit == NS:
            frame[column.in_seconds] = frame[column.name] / 1e9
    return frame[list(table.dtypes)]
