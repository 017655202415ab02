"""Writing a run folder: everything as it happens, so that a killed run leaves evidence."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Unpack

from testbed.rundir.files import write_failed, write_whole
from testbed.rundir.lines import EVENTS, HISTORY, HistoryFields
from testbed.rundir.results import LOGS
from testbed.rundir.tables import COMPLETIONS, SAMPLES, CsvTable, RowT

_IN_EVERY_RUN: tuple[CsvTable[Any], ...] = (SAMPLES, COMPLETIONS)
"""Files that have at least their head."""


class Recorder:
    """The open files of a run. Every line is flushed: the run may be killed after it.

    A write that fails (a full disk) raises RunError, which ends the run; what is on disk stays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = _whole_lines(folder / "history.jsonl")
        self._files: dict[str, IO[str]] = {}
        for table in _IN_EVERY_RUN:
            if not (folder / table.file).exists():
                self.rows(table, ())

    def history(self, outcome: str, /, **fields: Unpack[HistoryFields]) -> None:
        """Something was begun (`invoke`), done (`ok`) or failed (`fail`)."""
        self._line(HISTORY.file, {"i": self._index, "t_ns": time.monotonic_ns(), "type": outcome, **fields})
        self._index += 1

    def event(self, host: str, event: dict[str, Any]) -> None:
        """A line from an endpoint daemon."""
        self._line(EVENTS.file, {"host": host, **event})

    def rows(self, table: CsvTable[RowT], rows: Iterable[RowT]) -> None:
        """Rows of a table; a new file gets its head first."""
        new = table.file not in self._files and not (self.folder / table.file).exists()
        lines: Iterable[tuple[Any, ...]] = (table.names, *rows) if new else rows
        # Names and numbers only: nothing here needs quoting.
        self._write(table.file, "".join(",".join(map(str, line)) + "\n" for line in lines))

    def document(self, name: str, content: Any) -> None:
        """A whole JSON file, written beside and moved into place: it is never half there."""
        self.text(name, json.dumps(content, indent=1) + "\n")

    def text(self, name: str, content: str) -> None:
        """A whole text file, likewise."""
        path = self.folder / name
        try:
            write_whole(path, content)
        except OSError as error:
            raise write_failed(path, error) from error

    def log(self, host: str) -> IO[bytes]:
        """The file that takes what a host's daemon prints."""
        path = self.folder / LOGS / f"{host}.log"
        try:
            return path.open("wb")
        except OSError as error:
            raise write_failed(path, error) from error

    def binary(self, name: str) -> IO[bytes]:
        """A new file for `append`; its folder is made."""
        path = self.folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            return path.open("wb", buffering=0)
        except OSError as error:
            raise write_failed(path, error) from error

    def append(self, file: IO[bytes], content: bytes | memoryview) -> None:
        """Write into a file of `binary`, at once."""
        try:
            if file.write(content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise write_failed(Path(file.name), error) from error

    def close(self) -> None:
        """Close what is open. What could not be written is tried once more; its failure was told when it was met."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()
        self._files.clear()

    def _line(self, name: str, content: dict[str, Any]) -> None:
        self._write(name, json.dumps(content, separators=(",", ":")) + "\n")

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        try:
            file = self._files.get(name)
            if file is None:
                file = self._files[name] = path.open("a", encoding="utf-8")
            file.write(text)
            file.flush()
        except OSError as error:
            raise write_failed(path, error) from error


def note_interrupt(folder: Path, reason: str) -> None:
    """Write into the history why a run ended early. Raises RunError when that cannot be written."""
    recorder = Recorder(folder)
    try:
        recorder.history("fail", op="interrupt", error=reason)
    finally:
        recorder.close()


def _whole_lines(path: Path) -> int:
    """How many lines a file has. A last one that a kill tore is cut off, or the next would be written behind it."""
    if not path.exists():
        return 0
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return content.count(b"\n")
