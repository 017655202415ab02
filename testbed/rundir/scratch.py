"""Folders below the system's folder for temporary files, which go even where their process was killed: the next one
removes them.

Their owner holds a lock in them, and so does a run that outlives it to take its fabric down.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.rundir.lock import NoLocks, locked

LOCK = ".lock"
CELL, HUNT = "mrc-cell-", "mrc-hunt-"
"""How their names begin."""
PREFIXES = (CELL, HUNT)
_OLD_S = 86400
"""Of a folder without a lock, as earlier versions made them: nobody uses it for so long."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder and its lock. A child that is given the descriptor keeps the folder, as long as it lives, from those
    who clear up."""

    path: Path
    lock: int


@contextmanager
def scratch(prefix: str) -> Iterator[Scratch]:
    """A new folder, gone when the body ends; before that, folders of this prefix without an owner go. Raises
    OSError."""
    remove_left(prefix)
    with ExitStack() as held:
        made = _made(prefix, held)
        try:
            yield made
        finally:
            shutil.rmtree(made.path, ignore_errors=True)
    _remove_rest(made.path)


def _made(prefix: str, held: ExitStack) -> Scratch:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            return Scratch(path, _held(path / LOCK, held))
        except (BlockingIOError, FileNotFoundError):  # one who clears up came between the file and its lock
            continue
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise


def _held(path: Path, held: ExitStack) -> int:
    """The lock; where the file system keeps none the file alone: then nobody clears up behind a process that dies."""
    try:
        return held.enter_context(locked(path))
    except NoLocks:
        file = os.open(path, os.O_RDWR)
        held.callback(os.close, file)
        return file


def remove_left(*prefixes: str) -> list[Path]:
    """Removes what killed processes of this user left behind, and returns it."""
    place = Path(tempfile.gettempdir())
    found = [path for prefix in prefixes for path in sorted(place.glob(f"{prefix}*")) if _is_left(path)]
    return [path for path in found if _remove(path)]


def _is_left(path: Path) -> bool:
    """A folder of this user, and no link to one, that may be without an owner."""
    try:
        about = path.lstat()
        mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
        if not (stat.S_ISDIR(about.st_mode) and mine):
            return False
        return os.path.lexists(path / LOCK) or time.time() - about.st_mtime > _OLD_S
    except OSError:  # it has just gone
        return False


def _remove(path: Path) -> bool:
    """Not where somebody holds its lock."""
    try:
        with locked(path / LOCK):
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return False
    _remove_rest(path)
    return not path.exists()


def _remove_rest(path: Path) -> None:
    """Windows keeps a folder while a file in it is open, as its lock was."""
    with contextlib.suppress(OSError):
        path.rmdir()
