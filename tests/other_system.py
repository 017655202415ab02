"""Runs commands as on a system that is not Linux, where less is to be had:

    python -m tests.other_system win32 "validate scenarios/quickstart.yaml" "plan --planes 1,8"
    python -m tests.other_system darwin "run scenarios/quickstart.yaml --virtual"

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
OF_UNIX = {
    *("crypt", "curses", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog"),
    *("termios", "tty", "_posixsubprocess"),
}
"""Modules of the standard library that Windows does not have."""
OF_LINUX = {"mininet", "pyroute2"}
"""Packages that are installed on Linux alone: nobody may import them."""
NOT_ON_WINDOWS = {
    "ctypes": r"CDLL",
    "mmap": r"MAP_\w+|PROT_\w+",
    "os": r"""fork|forkpty|[gs]ete?[ug]id|[gs]etre[ug]id|[gs]etres[ug]id|[gs]etgroups|getgrouplist|initgroups
        |[lf]?chown|fchmod|fchdir|chroot|getpgrp|setpgrp|[gs]etpgid|[gs]etsid|[gs]etpriority|killpg|nice|mkfifo|mknod
        |major|minor|makedev|ttyname|ctermid|tc[gs]etpgrp|openpty|login_tty|preadv?|pwritev?|readv|writev|sendfile
        |splice|copy_file_range|pidfd_open|unshare|setns|uname|sched_\w+|f?pathconf|sysconf|confstr|f?statvfs|sync
        |fdatasync|lockf|getrandom|environb|getenvb|\w+xattr|[gs]et_blocking|pipe2|memfd_create|eventfd\w*|posix_\w+
        |wait[34]?|waitid|W(?!_OK)[A-Z]+|register_at_fork|getloadavg
        |O_(NOCTTY|NONBLOCK|NDELAY|CLOEXEC|DIRECTORY|NOFOLLOW|PATH|TMPFILE|SYNC|DSYNC|ASYNC|DIRECT|NOATIME)
        |(PRIO|POSIX|SCHED|XATTR|MFD|EFD|GRND|RTLD|RWF|SPLICE|ST|CLD)_\w+|SEEK_(DATA|HOLE)|F_T?U?LOCK""",
    "select": r"e?poll|EPOLL\w+|POLL\w+",
    "signal": r"""SIG(?!_DFL|_IGN|(ABRT|FPE|ILL|INT|SEGV|TERM)$)\w+|[gs]etitimer|ITIMER_\w+|alarm|pause|pthread_\w+
        |sigpending|sigtimedwait|sigwait\w*|siginterrupt""",
    "socket": r"""AF_(NETLINK|PACKET|UNIX)|NETLINK_\w+|SOCK_(NONBLOCK|CLOEXEC)|CMSG_\w+|SCM_\w+|(send|recv)_fds
        |SO_(REUSEPORT|MARK|PRIORITY|BINDTODEVICE|PEERCRED|PASSCRED|\w+FORCE)
        |MSG_(DONTWAIT|NOSIGNAL)|TCP_(INFO|CONGESTION)""",
    "time": r"clock_\w+|CLOCK_\w+|pthread_\w+",
}
"""Names of these modules that Linux has and Windows has not."""
NOT_ON_MACOS = {
    "mmap": r"MAP_(POPULATE|STACK|GROWSDOWN|DENYWRITE|EXECUTABLE|LOCKED|HUGETLB)",
    "os": r"""sched_(?!yield|get_priority)\w+|pidfd_open|unshare|setns|pipe2|memfd_create|eventfd\w*|splice
        |copy_file_range|posix_fa\w+|getrandom|\w+xattr|[gs]etres[ug]id|fdatasync
        |O_(PATH|TMPFILE|DIRECT|NOATIME)|(MFD|EFD|GRND|XATTR|SPLICE|RWF)_\w+|SCHED_(BATCH|IDLE|RESET_ON_FORK)""",
    "resource": r"prlimit|RLIMIT_(MSGQUEUE|NICE|RTPRIO|RTTIME|SIGPENDING|OFILE)",
    "select": r"epoll|EPOLL\w+|POLLRDHUP",
    "signal": r"sigtimedwait|sigwaitinfo|SIG(PWR|STKFLT|CLD|POLL|RTMIN|RTMAX)|pidfd_send_signal",
    "socket": r"""AF_(NETLINK|PACKET|VSOCK|ALG|CAN|TIPC|QIPCRTR)|NETLINK_\w+|PACKET_\w+|SOCK_(NONBLOCK|CLOEXEC)
        |SO_(MARK|PRIORITY|BINDTODEVICE|PEERCRED|PASSCRED|\w+FORCE)|TCP_(CONGESTION|QUICKACK|USER_TIMEOUT)""",
    "time": r"CLOCK_(BOOTTIME|TAI)|pthread_getcpuclockid",
}
"""Names of these modules that Linux has and macOS has not."""


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


def leave_linux(system: str) -> None:
    """From here on, modules of ours find what the other system has: `win32` or `darwin`."""
    whole = builtins.__import__
    missing = NOT_ON_WINDOWS if system == "win32" else NOT_ON_MACOS
    poorer: dict[str, ModuleType] = {name: Poorer(whole(name), names) for name, names in missing.items()}
    poorer["sys"] = Poorer(sys, platform=system)
    if system == "win32":
        poorer["msvcrt"] = _windows_locks()
    absent = OF_UNIX if system == "win32" else {"spwd"}

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
        if first in OF_LINUX or (ours and first in absent):
            raise ModuleNotFoundError(f"{importer} imports {name}, which this system does not have", name=name)
        return poorer[name] if ours and name in poorer else whole(name, globals, locals, fromlist, level)

    builtins.__import__ = found  # type: ignore[assignment]
    sys.addaudithook(_refuse_links if system == "win32" else _refuse)


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
    """There is no /proc and no /sys."""
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])


def _refuse_links(event: str, arguments: tuple[Any, ...]) -> None:
    """Nor may an ordinary user of Windows make links."""
    _refuse(event, arguments)
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
    leave_linux(sys.argv[1])
    json.dump(refused_imports() if sys.argv[2:] == ["--imports"] else [*map(ended, sys.argv[2:])], sys.stdout)
