"""Runs commands as on a system that is not Linux, such as Windows, where less is to be had:

    python -m tests.other_system "validate scenarios/quickstart.yaml" "plan --planes 1,8"

Prints a JSON list: of each command its exit status and its output. With --imports instead: the modules of ours that
cannot be imported there, and why.

Only our own modules find less: the standard library and the packages know by themselves where they are.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import importlib
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

ROOT = Path(__file__).parents[1]
ROOMS = ("topos", "hosts", "testbed")
OF_UNIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
"""Modules of the standard library that Windows does not have."""
OF_LINUX = {"mininet", "pyroute2"}
"""Packages that are installed on Linux alone: nobody may import them."""
MISSING = {
    "ctypes": r"CDLL",
    "mmap": r"MAP_\w+|PROT_\w+",
    "os": r"""fork|forkpty|[gs]ete?[ug]id|[gs]etgroups|[lf]?chown|fchmod|getpgrp|[gs]etpgid|setsid|killpg|nice|mkfifo
        |ttyname|tc[gs]etpgrp|openpty|pread|pwrite|pidfd_open|unshare|setns|uname|sched_\w+|sysconf|f?statvfs
        |O_(NOCTTY|NONBLOCK|CLOEXEC|DIRECTORY|NOFOLLOW)|W[A-Z]+|wait[34]?|waitid|register_at_fork|getloadavg|pipe2
        |memfd_create|eventfd\w*|posix_\w+|set_blocking|readv|writev|sendfile""",
    "select": r"e?poll|EPOLL\w+|POLL\w+",
    "signal": r"""SIG(?!_DFL|_IGN|(ABRT|FPE|ILL|INT|SEGV|TERM)$)\w+|[gs]etitimer|ITIMER_\w+|alarm|pause|pthread_\w+
        |sigpending|sigtimedwait|sigwait\w*|siginterrupt""",
    "socket": r"""AF_(NETLINK|PACKET|UNIX)|NETLINK_\w+|SOCK_(NONBLOCK|CLOEXEC)|CMSG_\w+|SCM_\w+
        |MSG_(DONTWAIT|NOSIGNAL)|TCP_(INFO|CONGESTION)""",
    "time": r"clock_\w+|CLOCK_\w+|pthread_\w+",
}
"""Names of these modules that Linux has and Windows has not."""


class Poorer(ModuleType):
    """A module without some of its names, and with others in place of its own."""

    def __init__(self, whole: ModuleType, missing: str = "", **other: Any) -> None:
        super().__init__(whole.__name__)
        vars(self).update(other)
        self._whole, self._missing = whole, re.compile(missing, re.VERBOSE)

    def __getattr__(self, name: str) -> Any:
        if self._missing.fullmatch(name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on this system", name=name)
        return getattr(self._whole, name)


def leave_linux() -> None:
    """From here on, modules of ours find what the other system has."""
    whole = builtins.__import__
    poorer: dict[str, ModuleType] = {name: Poorer(whole(name), missing) for name, missing in MISSING.items()}
    poorer["sys"] = Poorer(sys, platform="win32")
    poorer["msvcrt"] = _windows_locks()

    def found(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        importer = str((globals or {}).get("__name__", ""))
        ours = importer.startswith("mrc_testbed.")
        first = "" if level else name.partition(".")[0]
        if first in OF_LINUX or (ours and first in OF_UNIX):
            raise ModuleNotFoundError(f"{importer} imports {name}, which this system does not have", name=name)
        return poorer[name] if ours and name in poorer else whole(name, globals, locals, fromlist, level)

    builtins.__import__ = found
    sys.addaudithook(_refuse)


def _windows_locks() -> ModuleType:
    """What Windows has in place of flock(2), made of it."""
    import fcntl

    made: Any = ModuleType("msvcrt")
    made.LK_NBLCK = 2

    def locking(file: int, _mode: int, _bytes: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    made.locking = locking
    return cast(ModuleType, made)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """There is no /proc and no /sys, and an ordinary user of Windows may make no links."""
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])
    if event == "os.symlink":
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), arguments[1])


def ended(command: str) -> tuple[int, str]:
    """Call the program. Returns its exit status, and all that it printed."""
    from mrc_testbed.testbed.cli import main

    sys.argv = ["mrc-testbed", *shlex.split(command)]
    printed, status = io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
    return status, printed.getvalue()


def refused_imports() -> dict[str, str]:
    """The modules of ours that cannot be imported, and why."""
    found = {}
    files = (path.relative_to(ROOT) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))
    for module in (".".join(("mrc_testbed", *file.with_suffix("").parts)).removesuffix(".__init__") for file in files):
        try:
            importlib.import_module(module)
        except (ImportError, AttributeError) as error:
            found[module] = str(error)
    return found


if __name__ == "__main__":
    with contextlib.suppress(ImportError):  # the extra: elsewhere its packages need no /proc, here they look into it
        importlib.import_module("distributed")
    leave_linux()
    json.dump(refused_imports() if sys.argv[1:] == ["--imports"] else [*map(ended, sys.argv[1:])], sys.stdout)
