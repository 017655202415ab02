"""Files and folders that are there whole or not at all, and not written through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from secrets import token_hex
from typing import IO

from mrc_testbed.testbed.folders import make_own

UNFINISHED = ".part"
"""The end of the names of files and folders whose writing was not finished."""


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


@contextlib.contextmanager
def room_beside(path: Path) -> Iterator[Path]:
    """A new folder beside a path (`NAME.<8 digits>.part`): what is built there lands by a rename. The folder goes with
    the block. Raises OSError."""
    room = path.parent / f"{path.name}.{token_hex(4)}{UNFINISHED}"
    room.mkdir()
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """A folder of these files and no others, in place of one that is there. Raises OSError, and then the old one is as
    it was."""
    make_own(folder.parent)
    with room_beside(folder) as room:
        new, old = room / "new", room / "old"
        new.mkdir()
        for name, text in files.items():
            write_whole(new / name, text)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
