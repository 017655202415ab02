"""A folder that is opened once: what is read and written below it stays in it, whatever becomes of its name.

Its owner may exchange a folder, a file or a link at any moment, also between what a command looks at and what it does
next. So `hold` opens the folder, and each name below is looked up from there, one after the other, through no link.
Linux alone names what a process has open (/proc/self/fd, proc(5)); elsewhere a held folder is a path as any.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path, PosixPath
from typing import IO, Any

from mrc_testbed.testbed.consent import trusts
from mrc_testbed.testbed.errors import UsageError

_OPENED = Path("/proc/self/fd")
_MOST_INNER = 64
"""Folders of a held folder that stay open: more than lie in each other, and few beside what a process may open."""


class _Held:
    """An open folder, and those in it that were opened on the way to a file."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.file = os.open(path, _FOLDER)
        self._inner: dict[tuple[str, ...], int] = {}

    def way(self, names: tuple[str, ...]) -> str:
        """To what the names lead to from here, for the kernel. Raises OSError where one of them is a link, or leads
        up."""
        at = self.file
        for depth in range(1, len(names)):
            at = self._opened(at, names[:depth])
        last = names[-1] if names else "."
        if last == "..":
            raise PermissionError(errno.EPERM, "leads out of the folder", "/".join(names))
        return f"{_OPENED}/{at}/{last}"

    def _opened(self, at: int, names: tuple[str, ...]) -> int:
        if names[-1] == "..":
            raise PermissionError(errno.EPERM, "leads out of the folder", "/".join(names))
        if names not in self._inner:
            if len(self._inner) == _MOST_INNER:
                os.close(self._inner.pop(next(iter(self._inner))))
            self._inner[names] = os.open(names[-1], _FOLDER | os.O_NOFOLLOW, dir_fd=at)
        return self._inner[names]

    def __del__(self) -> None:
        for file in (*self._inner.values(), self.file):
            os.close(file)


_HELD: dict[str, _Held] = {}
"""By their paths as people name them, which are those of all messages."""


class HeldPath(PosixPath):
    """A held folder, or a name below one. `str` is its name; the kernel is given the way to it from what is open."""

    __slots__ = ()

    def __fspath__(self) -> str:
        text = str(self)
        names: tuple[str, ...] = ()
        while text not in _HELD:
            text, _, name = text.rpartition("/")
            if not text:
                return str(self)
            names = (name, *names)
        return _HELD[text].way(names)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Of itself, if it is a link."""
        return os.stat(self, follow_symlinks=False)

    def iterdir(self) -> Generator[HeldPath, None, None]:
        """By their names in the open folder."""
        yield from (self / name for name in os.listdir(self))

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """As Path, but through no link."""
        try:
            return open(self, mode, buffering, encoding, errors, newline, opener=_through_no_link)
        except OSError as error:
            error.filename = str(self)
            raise


def _through_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC if sys.platform == "linux" else 0


def hold(folder: Path) -> Path:
    """The folder that has this name now, for as long as the process lives. Raises OSError."""
    if isinstance(folder, HeldPath) or sys.platform != "linux" or not _OPENED.exists():
        return folder
    _HELD[str(folder)] = _Held(folder)
    return HeldPath(folder)


def let_go(folder: Path) -> None:
    """The folder is to be known by its name again, as one that is removed."""
    _HELD.pop(str(folder), None)


def require_own(path: Path, fix: str) -> None:
    """Raises UsageError, with `fix`, for what another user could exchange, or has written, who is not trusted."""
    about = path.stat()
    if not trusts(about.st_uid):
        raise UsageError(f"{path}: belongs to {user_named(about.st_uid)}, who may exchange what is there: {fix}")
    if about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
        raise UsageError(f"{path}: every user may exchange what is there: `chmod o-w` it")


def user_named(number: int) -> str:
    """A user's name, or the number of one without."""
    import pwd  # Windows has none

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
