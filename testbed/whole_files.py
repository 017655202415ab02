"""Files that are there whole or not at all, and not written through a link."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from secrets import token_hex
from typing import IO

UNFINISHED = ".part"
"""The end of the names of files whose writing was not finished."""


def write_whole(path: Path, content: str) -> None:
    """Write beside the file, then rename: readers see the old text or the new one. Raises OSError."""
    write_parts(path, (content,))


def write_parts(path: Path, content: Iterable[str]) -> None:
    """The same for a text in parts, which is never in memory as a whole. Raises OSError, and what `content` raises.

    Each call writes beside it under a name of its own (`NAME.<8 digits>.part`), so of processes that write the same
    file at once the last one counts, and its text is whole.
    What has no UTF-8, as the name of a folder may have none, is written as `\\udcff`.
    """
    if path.is_dir():  # `.` has no name, and beside another one a file would be left
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f"{path.name}.{token_hex(4)}{UNFINISHED}")
    try:
        with TextIOWrapper(open_new(temporary), "utf-8", "backslashreplace", newline="") as file:
            file.writelines(content)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def open_new(path: Path) -> IO[bytes]:
    """A file that was not there; what had its name is removed, and what a link of that name pointed to stays. Raises
    OSError."""
    path.unlink(missing_ok=True)
    return path.open("xb")
