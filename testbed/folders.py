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
from collections.abc import Generator, Iterator
from pathlib import Path, PosixPath
from typing import IO, Any

from mrc_testbed.testbed.consent import OWNERS, trusts
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.state import sudo_caller

_OPENED = Path("/proc/self/fd")
_MOST_LINKS = 40
"""On one way, as for the kernel (path_resolution(7))."""
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
"""By their paths from the root, not made shorter: what leads up is to be seen."""


def _key(path: Path) -> str:
    text = str(path)
    return text if text.startswith("/") else f"{os.getcwd()}/{text}".removesuffix("/.")


class HeldPath(PosixPath):
    """A held folder, or a name below one. `str` is its name; the kernel is given the way to it from what is open."""

    __slots__ = ()

    def __fspath__(self) -> str:
        text = _key(self)
        names: tuple[str, ...] = ()
        while text not in _HELD:
            text, _, name = text.rpartition("/")
            if not text:
                return str(self)
            names = (name, *names)
        return _HELD[text].way(names)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The link's own status, if it is one."""
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
        """As Path, but through no link, and without waiting for who writes into a pipe."""
        try:
            return open(self, mode, buffering, encoding, errors, newline, opener=_through_no_link)
        except OSError as error:
            error.filename = str(self)
            raise


def _through_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC if sys.platform == "linux" else 0


def hold(folder: Path) -> Path:
    """The folder that has this name now, for as long as the process lives. Raises OSError."""
    if isinstance(folder, HeldPath) or sys.platform != "linux" or not _OPENED.exists():
        return folder
    _HELD[_key(folder)] = _Held(folder)
    return HeldPath(folder)


def as_held(path: Path) -> Path:
    """The same, as a path below a held folder where it lies in one: by its name it could lead elsewhere."""
    if isinstance(path, HeldPath):
        return path
    key = Path(_key(path))
    return path if _HELD.keys().isdisjoint((str(key), *map(str, key.parents))) else HeldPath(path)


def let_go(folder: Path) -> None:
    """The folder is to be known by its name again, as one that is removed."""
    _HELD.pop(_key(folder), None)


def require_own(path: Path, fix: str) -> None:
    """Raises UsageError, with `fix`, for what another user could exchange, or has written, who is not trusted."""
    _require_own(path, path.stat(), fix)


def _require_own(path: Path, about: os.stat_result, fix: str) -> None:
    if not trusts(about.st_uid):
        raise UsageError(f"{path}: belongs to {user_named(about.st_uid)}, who may exchange what is there: {fix}")
    if stat.S_ISLNK(about.st_mode) or about.st_mode & stat.S_ISVTX:
        return  # a link has no rights; in a sticky folder everybody exchanges what they own alone
    if about.st_mode & stat.S_IWOTH:
        raise UsageError(f"{path}: every user may exchange what is there: `chmod o-w` it, or name another folder")
    if about.st_mode & stat.S_IWGRP and about.st_gid not in _own_groups():
        raise UsageError(f"{path}: its group may exchange what is there: `chmod g-w` it, or name another folder")


def require_own_way(path: Path) -> None:
    """Raises UsageError for the first folder or link on the way to `path`, itself included, that a user may exchange
    who is not trusted: what is written there could be led elsewhere. What is not there yet ends the way."""
    if not hasattr(os, "geteuid"):
        return
    for each in _way(path):
        try:
            about = each.lstat()
        except OSError:
            return  # who writes there is told why it cannot be
        number = about.st_uid
        _require_own(each, about, f"name another folder; {OWNERS}={number} in the environment trusts that user")


def make_own(folder: Path) -> list[Path]:
    """Make a folder, and those above it that are not there, which are returned. Raises UsageError as `require_own_way`,
    before and after, because in a folder for all another user may be faster; OSError."""
    require_own_way(folder)
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    require_own_way(folder)
    return missing


def _way(path: Path) -> Iterator[Path]:
    """Names that the kernel passes, in order; a link comes before the names that it leads to."""
    names = [*reversed((Path.cwd() / path).parts)]
    at, links = Path(names.pop()), 0
    yield at
    while names:
        at = at / names.pop()
        yield at
        if at.is_symlink() and links < _MOST_LINKS:
            links += 1
            target = at.readlink()
            names += reversed(target.parts)
            at = at.parent


def _own_groups() -> set[int]:
    return {os.getegid(), *os.getgroups(), *(sudo_caller() or ())[1:]}


def user_named(number: int) -> str:
    """A user's name, or the number of one without."""
    import pwd  # Windows has none

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
