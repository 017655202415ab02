"""Owner of a run folder: the user who called sudo; during the run also the process that writes it."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.fabric.privileges import can_be_given_to
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.rundir.files import RecordError, read_json, write_failed
from mrc_testbed.testbed.rundir.lock import NoLocks, is_locked, locked
from mrc_testbed.testbed.state import sudo_caller
from mrc_testbed.testbed.terminal import say
from mrc_testbed.testbed.whole_files import write_whole

OWNER = "owner.json"
"""Names the process that writes this folder; removed once the verdict exists."""
LOCK = "owner.lock"
"""Locked as long as that process lives: a number of a process says nothing in another PID namespace."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OWN_PIDS = Path("/proc/self/ns/pid")


def write_given(path: Path, content: str) -> None:
    """Like write_whole, for a file that the caller owns; creates missing folders, but none at the root, where a name
    is mistyped. Raises OSError; UsageError where another user may exchange a folder on the way."""
    top = Path(path.anchor, *path.parts[1:2])
    if path.is_absolute() and not top.exists() and top != path:
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {top}", str(path))
    missing = make_own(path.parent)
    write_whole(path, content)
    give((*missing, path))


def give(paths: Iterable[Path]) -> None:
    """Make the user who called sudo the owner; does nothing without sudo, with a SUDO_UID that is not a number, or in
    a user namespace that does not have that user."""
    owner = sudo_caller()
    if owner and can_be_given_to(*owner):
        for path in paths:
            os.chown(path, *owner, follow_symlinks=False)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """This process writes the folder until the body ends. Where it ends by an error the folder is as that of a killed
    run. Raises RunError."""
    with being_written(folder):
        path = folder / OWNER
        try:
            about = {"pid": os.getpid(), "pid_namespace": _pid_namespace(), "pid_since": _begin_of(os.getpid())}
            write_whole(path, json.dumps(about))
        except OSError as error:
            raise write_failed(path, error) from error
        yield
        path.unlink(missing_ok=True)


@contextmanager
def being_written(folder: Path) -> Iterator[None]:
    """Nobody else may write the folder. Raises RunError where another process does.

    Where the file system keeps no locks, a warning says that nobody notices a second one that begins at the same time.
    """
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder / LOCK))
        except BlockingIOError:
            raise RunError(f"{folder}: another process writes it") from None
        except NoLocks as error:
            if _writer_lives(folder):
                raise RunError(f"{folder}: another process writes it") from None
            _warn_of_no_locks(folder.parent, error.strerror)
            held.callback((folder / LOCK).unlink, missing_ok=True)
        except OSError as error:
            raise write_failed(folder / LOCK, error) from error
        yield


def release(folder: Path) -> None:
    """Removes the claim of a killed run, after the verdict was written."""
    (folder / OWNER).unlink(missing_ok=True)


def hand_over(folder: Path) -> None:
    """Give the folder to the user who called sudo. Where the file system keeps no owners, a warning says so."""
    try:
        give((folder, *folder.rglob("*")))
    except OSError as error:
        say(
            f"warning: {error.filename or folder} could not be given to the user behind sudo: {error.strerror}",
            err=True,
        )


def is_running(folder: Path) -> bool:
    """A living process writes the folder, on this machine or, as far as the file system tells, on another. Raises
    RecordError."""
    return os.path.lexists(folder / OWNER) and _is_locked(folder)


def abandoned(folder: Path) -> bool:
    """A run was started here, and no process writes it any more. Raises RecordError."""
    return _was_claimed(folder) and not _is_locked(folder)


def writer_of(folder: Path) -> int | None:
    """The process that writes the folder now; None where a run is over or was never begun. Raises UsageError for one
    whose process has no number here."""
    if not is_running(folder):
        return None
    owner = read_json(folder / OWNER)
    if owner is None:
        return None  # it has just ended
    here = _pid_namespace()
    if not here or owner.get("pid_namespace") != here or not isinstance(owner.get("pid"), int):
        raise UsageError(f"{folder}: this run goes on in another container or on another machine; attach to it there")
    return int(owner["pid"]) if owner.get("pid_since") == _begin_of(owner["pid"]) else None


def _was_claimed(folder: Path) -> bool:
    try:
        mode = (folder / OWNER).lstat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RecordError(folder / OWNER, f"cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise RecordError(folder / OWNER, "is no plain file: move it elsewhere")
    return True


def _is_locked(folder: Path) -> bool:
    try:
        return is_locked(folder / LOCK)
    except NoLocks:
        return _writer_lives(folder)
    except OSError as error:
        raise RecordError(folder / LOCK, f"cannot be read: {error.strerror}") from None


def _writer_lives(folder: Path) -> bool:
    """By the process that owner.json names; one of another machine or container is taken to be alive."""
    owner = read_json(folder / OWNER)
    if owner is None:
        return False
    if not owner.get("pid_namespace") or owner["pid_namespace"] != _pid_namespace():
        return True
    return bool(owner.get("pid_since")) and owner["pid_since"] == _begin_of(owner.get("pid"))


def _begin_of(pid: object) -> str:
    """When a process began, in ticks since boot: its number may be another's later. Empty without /proc, or without
    the process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return ""


@cache
def _warn_of_no_locks(folder: Path, why: str) -> None:
    say(
        f"warning: {folder}: its file system keeps no locks ({why}): let one process at a time write there, or give"
        " another --out",
        err=True,
    )


def _pid_namespace() -> str:
    """Among which processes a PID counts; empty where that is unknown."""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
        return f"{boot} {_OWN_PIDS.stat().st_ino}"
    except OSError:
        return ""
