"""Writes a run folder as the run goes, so that a killed run leaves its evidence."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import IO, Any, Unpack

from mrc_testbed.hosts.json_lines import as_line
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.rundir.files import (
    MOST_LINE_BYTES,
    MOST_TABLE_BYTES,
    open_plain,
    refuse_strange_files,
    write_failed,
)
from mrc_testbed.testbed.rundir.lines import EVENTS, HISTORY, MAP, HistoryFields, MapFields
from mrc_testbed.testbed.rundir.results import LOGS
from mrc_testbed.testbed.rundir.sizes import note_more
from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotWriter
from mrc_testbed.testbed.rundir.tables import COMPLETIONS, SAMPLES, CsvTable, RowT
from mrc_testbed.testbed.whole_files import open_new, write_parts

_IN_EVERY_RUN: tuple[CsvTable[Any], ...] = (SAMPLES, COMPLETIONS)
"""Files whose header is always written."""
_JSON = json.JSONEncoder(indent=1)


class Recorder:
    """The open files of a run. Every line is written at once, because the run may be killed at any time; without
    `at_once` lines of all files but the history's wait for the next `flush` or line of the history.

    A failed write (such as a full disk) raises RunError, which ends the run; earlier data stays. `clock`: the time in
    ns, of the world of the run; None: CLOCK_MONOTONIC.
    """

    def __init__(self, folder: Path, clock: Callable[[], int] | None = None, at_once: bool = True) -> None:
        self.folder = folder
        self._clock = clock or time.monotonic_ns
        self._at_once = at_once
        self._waiting: dict[str, list[str]] = {}
        """Text by file, in the order in which it came."""
        self._index = _whole_lines(folder / "history.jsonl")
        self._files: dict[str, IO[str]] = {}
        self._begun: set[str] = set()
        self._logs: set[Path] = set()
        """Tables that have their headers."""
        self._snapshots = SnapshotWriter()
        for table in _IN_EVERY_RUN:
            if not (folder / table.file).exists():
                self.rows(table, ())

    def history(self, outcome: str, /, **fields: Unpack[HistoryFields]) -> None:
        """Record that an action began (`invoke`), succeeded (`ok`) or failed (`fail`)."""
        line = {"i": self._index, "t_ns": self._clock(), "type": outcome, **fields}
        self._index += 1
        self._write(HISTORY.file, as_line(line) + "\n")
        self.flush()

    def event(self, host: str, event: dict[str, Any]) -> None:
        """Record an event of an endpoint daemon."""
        self._put(EVENTS.file, as_line({"host": host, **self._snapshots.shortened(host, event)}) + "\n")

    def mapped(self, **fields: Unpack[MapFields]) -> None:
        """Record what the mapper says, or decides."""
        self._put(MAP.file, as_line(fields) + "\n")

    def rows(self, table: CsvTable[RowT], rows: Iterable[RowT]) -> None:
        """Append rows to a table; a new file gets its header first."""
        new = table.file not in self._begun and not (self.folder / table.file).exists()
        self._begun.add(table.file)
        lines: Iterable[tuple[Any, ...]] = (table.names, *rows) if new else rows
        # Names and numbers only: nothing here needs quoting.
        form = ",".join(["%s"] * len(table.columns)) + "\n"
        self._put(table.file, "".join([form % line for line in lines]))

    def document(self, name: str, content: Any) -> None:
        """Write a JSON file atomically, part by part: as one text, counters.json of 1,024 hosts takes 270 MiB."""
        self._whole(name, chain(_JSON.iterencode(content), "\n"))

    def text(self, name: str, content: str) -> None:
        """Write a text file atomically."""
        self._whole(name, (content,))

    def _whole(self, name: str, content: Iterable[str]) -> None:
        path = self.folder / name
        try:
            write_parts(path, content)
        except OSError as error:
            raise write_failed(path, error) from error

    def log(self, host: str) -> IO[bytes]:
        """The file for the stderr of a host's daemon. Who opens it once more goes on writing it."""
        path = self.folder / LOGS / f"{host}.log"
        try:
            if path not in self._logs:
                open_new(path).close()
                self._logs.add(path)
            return path.open("ab")
        except OSError as error:
            raise write_failed(path, error) from error

    def binary(self, name: str) -> IO[bytes]:
        """Create a file for `append`, and its folder."""
        path = self.folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            return path.open("xb", buffering=0)
        except OSError as error:
            raise write_failed(path, error) from error

    def append(self, file: IO[bytes], content: bytes | memoryview) -> None:
        """Append to a file made by `binary`, unbuffered."""
        try:
            if file.write(content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise write_failed(Path(file.name), error) from error

    def flush(self) -> None:
        """Write what waits. Raises RunError."""
        while self._waiting:
            name = next(iter(self._waiting))
            self._write(name, "".join(self._waiting.pop(name)))

    def close(self) -> None:
        """Close all files. Retries unwritten data once; the failure was already reported."""
        with contextlib.suppress(RunError):
            self.flush()
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()
        self._files.clear()

    def _put(self, name: str, text: str) -> None:
        if self._at_once:
            self._write(name, text)
        else:
            self._waiting.setdefault(name, []).append(text)

    def _write(self, name: str, text: str) -> None:
        try:
            file = self._files.get(name)
            if file is None:
                file = self._files[name] = (self.folder / name).open("a", encoding="utf-8", newline="\n")
            file.write(text)
            file.flush()
        except OSError as error:
            raise write_failed(self.folder / name, error) from error


def note_interrupt(folder: Path, reason: str) -> None:
    """Record in the history why a run ended early. Raises RunError if it cannot be written, RecordError for a folder
    with links."""
    refuse_strange_files(folder)
    recorder = Recorder(folder)
    try:
        recorder.history("fail", op="interrupt", error=reason)
    finally:
        recorder.close()
    note_more(folder, HISTORY.file)


def _whole_lines(path: Path) -> int:
    """Number of complete lines. Cuts off an incomplete last one, so that new lines start cleanly."""
    lines = whole = read = 0
    try:
        with open_plain(path, MOST_TABLE_BYTES) as file:
            while part := file.readline(MOST_LINE_BYTES):
                read += len(part)
                if part.endswith(b"\n"):
                    lines, whole = lines + 1, read
    except (FileNotFoundError, NotADirectoryError):
        return 0
    if whole < read:
        os.truncate(path, whole)
    return lines
