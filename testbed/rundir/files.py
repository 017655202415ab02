"""Reads and writes whole files of a run folder: the same bytes on every system. Skips a last line that a kill cut
off.

People send each other run folders, and root writes into them: nothing here follows a link.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mrc_testbed.testbed.errors import RunError, TestbedError
from mrc_testbed.testbed.inputs import BYTE_ORDER_MARK
from mrc_testbed.testbed.whole_files import write_whole

MOST_DOCUMENT_BYTES = 64 << 20
"""Of a file that is read at once: JSON. Those of the largest runs have a few MB."""
MOST_TABLE_BYTES = 16 << 30
"""Of a file that is read line by line: tables, history, events. An hour of 64 hosts has 3 GB."""
MOST_LINE_BYTES = 4 << 20
"""Of one of its lines. A snapshot of a host with many QPs has some kB."""
MOST_CAPTURE_BYTES = 64 << 30
"""Of captured packets, which are read one by one."""
_BLOCK_BYTES = 1 << 20
_READ_FOLDERS, _MOST_FOLDERS = 2, 16
"""Depth to which files are read: those of a run folder and of its folders. Depth to which a user may have put some."""
_NO_DETOUR = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_PLAIN_FILES_ALONE = "a run folder holds plain files alone: remove it"


class RecordError(TestbedError):
    """A malformed run folder: the file and what is wrong with it."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.detail = detail


@contextmanager
def any_values(folder: Path) -> Iterator[None]:
    """For work on a folder that somebody sent: what its values make fail, beyond what was foreseen, is said of the
    folder. Raises RecordError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise RecordError(folder, f"holds a value that no run writes: {error} (--debug says where)") from error


def read_json(path: Path) -> dict[str, Any] | None:
    """One JSON object; None if the file is missing or incomplete. Raises RecordError."""
    try:
        with open_plain(path, MOST_DOCUMENT_BYTES) as file:
            value = parse_json(file.read(MOST_DOCUMENT_BYTES).decode(errors="replace"))
    except FileNotFoundError:
        return None
    except ValueError:
        return None
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror}") from None
    return value if isinstance(value, dict) else None


def parse_json(text: str) -> Any:
    """Raises ValueError for what is no JSON, or nested too deeply to be read."""
    try:
        return json.loads(text.removeprefix(BYTE_ORDER_MARK))
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def line_blocks(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, each with its end, about a megabyte at a time, because those of an hour may take 3 GB; none
    without the file. Only the last line of all may lack its end. Raises RecordError."""
    try:
        with open_plain(path, MOST_TABLE_BYTES) as file:
            while block := file.read(_BLOCK_BYTES):
                if not block.endswith(b"\n"):
                    block += file.readline(MOST_LINE_BYTES)
                lines = io.BytesIO(block).readlines()
                if len(lines[-1]) >= MOST_LINE_BYTES:
                    raise RecordError(path, f"has a line of more than {MOST_LINE_BYTES} bytes")
                yield lines
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror}") from None


def text_lines(path: Path) -> Iterator[str]:
    """The lines one by one. Raises RecordError."""
    for lines in line_blocks(path):
        for line in lines:
            yield line.decode(errors="replace")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file, none without the file. Raises RecordError for a bad line before the last
    one."""
    bad = 0
    for number, line in enumerate(text_lines(path), 1):
        if bad and line.strip():
            raise RecordError(path, f"line {bad} is not JSON")
        try:
            value = parse_json(line)
        except ValueError:  # incomplete, if it is the last line
            bad = bad or number
            continue
        if not isinstance(value, dict):
            raise RecordError(path, f"line {number} is not an object")
        yield value


def open_plain(path: Path, most_bytes: int) -> IO[bytes]:
    """A plain file, to be read: no link is followed, and no pipe waited for. Raises OSError; RecordError for anything
    else of that name and for a longer file."""
    try:
        file = os.open(path, os.O_RDONLY | _NO_DETOUR)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RecordError(path, f"is a link; {_PLAIN_FILES_ALONE}") from None
        raise
    about = os.fstat(file)
    wrong = "" if stat.S_ISREG(about.st_mode) else f"is no plain file; {_PLAIN_FILES_ALONE}"
    if stat.S_ISDIR(about.st_mode):
        wrong = "cannot be read: Is a directory"
    elif about.st_size > most_bytes:
        wrong = f"is {about.st_size} bytes long; such a file has at most {most_bytes}"
    if wrong:
        os.close(file)
        raise RecordError(path, wrong)
    return os.fdopen(file, "rb")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write one JSON object, readable and with a newline at the end."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def refuse_links(folder: Path, *names: str) -> None:
    """Raises RecordError where a folder in `folder`, or one in that, and so on, is a link. They need not be there."""
    path = folder
    for name in names:
        path = path / name
        if path.is_symlink():
            raise RecordError(path, "is a link, which may lead anywhere: remove it")


def refuse_strange_files(folder: Path) -> None:
    """Raises RecordError for the first thing in a run folder, or in a folder of it, that is neither a plain file nor a
    folder: a link leads elsewhere, and a pipe or a device never ends. Also for folders in folders without end."""
    waiting = [(folder, 1)]
    while waiting:
        within, depth = waiting.pop()
        for path, mode in _modes(within):
            if stat.S_ISDIR(mode):
                if depth == _MOST_FOLDERS:
                    raise RecordError(path, f"is a folder in {depth} others, one in another: move it elsewhere")
                waiting.append((path, depth + 1))
            elif depth <= _READ_FOLDERS and not stat.S_ISREG(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "a pipe, socket or device"
                raise RecordError(path, f"is {kind}; {_PLAIN_FILES_ALONE}")


def _modes(folder: Path) -> Iterator[tuple[Path, int]]:
    """What is in a folder, by name, with its kind. Raises RecordError."""
    try:
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # of a run that goes on: it has just been renamed
                yield path, path.lstat().st_mode
    except OSError as error:
        raise RecordError(folder, f"cannot be read: {error.strerror}") from None


def write_failed(path: Path, error: OSError) -> RunError:
    """The error for a run folder file that cannot be written."""
    return RunError(f"cannot write {path}: {error.strerror}; what was written before is kept")
