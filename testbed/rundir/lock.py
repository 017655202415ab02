"""A lock on a file that lasts as long as the processes that hold it, whatever they die of.

The kernel keeps it with the file: it is seen from other PID and mount namespaces, and so from other containers. Another
machine sees it if the file system carries locks between machines, as NFS does unless it is mounted with nolock.

Source: flock(2) and nfs(5) of Linux; on Windows a locked region of the file (LockFile).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A link leads elsewhere, and opening a pipe would wait. Windows has neither flag."""


_KEEPS_NONE = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


class NoLocks(OSError):
    """The file system of this file keeps no locks, as Lustre does without the mount option flock."""


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the lock, and take the file away in the end. Raises BlockingIOError where another process holds it, NoLocks,
    other OSErrors.

    Children of this process that run no other program hold it too, and so do programs that are given the descriptor
    that this yields.
    """
    file = _opened(path)
    try:
        try:
            yield file
        finally:
            if sys.platform != "win32":
                path.unlink(missing_ok=True)  # before it is free: afterwards it may be another's
    finally:
        os.close(file)
    if sys.platform == "win32":  # which keeps the names of open files
        path.unlink(missing_ok=True)


def _opened(path: Path) -> int:
    """The file, locked."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "Not a plain file")
            _lock(file, alone=True)
            if _is_there(path, file):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_there(path: Path, file: int) -> bool:
    """The open file still has this name: the last holder of the lock may have removed it before this one got it."""
    if sys.platform == "win32":  # where names of open files stay
        return True
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Some process holds the lock. Raises OSError where that cannot be told, NoLocks where nobody can hold one."""
    try:
        file = os.open(path, os.O_RDONLY | _PLAIN)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link, which nobody holds
            return False
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        _lock(file, alone=False)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, alone: bool) -> None:
        """Only the first byte; those who ask whether it is locked exclude each other too, for a moment."""
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None

else:
    import fcntl

    def _lock(file: int, alone: bool) -> None:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _KEEPS_NONE:
                raise NoLocks(error.errno, error.strerror) from None
            raise
