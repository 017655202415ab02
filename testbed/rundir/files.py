"""Reads and writes whole files of a run folder: the same bytes on every system. Skips a last line that a kill cut
off.

People send each other run folders, and root writes into them: nothing here follows a link.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from testbed.errors import RunError, TestbedError


class RecordError(TestbedError):
    """A malformed run folder: the file and what is wrong with it."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.detail = detail


def read_json(path: Path) -> dict[str, Any] | None:
    """One JSON object; None if the file is missing or incomplete."""
    text = _text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_lines(path: Path) -> Iterator[str]:
    """Yields lines one by one, because the events of an hour take 300 MB; none without the file. Raises RecordError."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror}") from None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file, none without the file. Raises RecordError for a bad line before the last
    one."""
    bad = 0
    for number, line in enumerate(text_lines(path), 1):
        if bad and line.strip():
            raise RecordError(path, f"line {bad} is not JSON")
        try:
            value = json.loads(line)
        except ValueError:  # incomplete, if it is the last line
            bad = bad or number
            continue
        if not isinstance(value, dict):
            raise RecordError(path, f"line {number} is not an object")
        yield value


def read_csv(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file with a header, none without the file."""
    text = _text(path)
    # An incomplete number still looks like a number, so only complete lines count.
    whole = text[: text.rfind("\n") + 1]
    header, *rows = whole.splitlines() or [""]
    columns = header.split(",")
    # Names and numbers only, never quoted: the csv module takes several times as long.
    return (dict(zip(columns, row.split(","), strict=False)) for row in rows)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write one JSON object, readable and with a newline at the end."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_whole(path: Path, content: str) -> None:
    """Write beside the file, then rename: readers see the old text or the new one. Raises OSError."""
    temporary = path.with_suffix(path.suffix + ".part")
    with open_new(temporary) as file:
        file.write(content.encode())
    temporary.replace(path)


def open_new(path: Path) -> IO[bytes]:
    """A file that was not there; what had its name is removed, and what a link of that name pointed to stays. Raises
    OSError."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def refuse_strange_files(folder: Path) -> None:
    """Raises RecordError for the first thing in a run folder that is neither a plain file nor a folder: a link leads
    elsewhere, and a pipe or a device never ends. Folders in it have no folders of their own."""
    top = sorted(folder.iterdir())
    inside = (each for path in top if path.is_dir() and not path.is_symlink() for each in sorted(path.iterdir()))
    for path in (*top, *inside):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # of a run that goes on: it has just been renamed
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            kind = "a link" if stat.S_ISLNK(mode) else "a pipe, socket or device"
            raise RecordError(path, f"is {kind}; a run folder holds plain files alone: remove it")


def write_failed(path: Path, error: OSError) -> RunError:
    """The error for a run folder file that cannot be written."""
    return RunError(f"cannot write {path}: {error.strerror}; what was written before is kept")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror}") from None
