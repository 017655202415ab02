"""Processes of a run, each looked at once: what is read and entered later is of that one, whose number may be reused.

Anybody may hold a lock, or call a process as a run calls its own. So none is entered before its users are known, as the
kernel has them (`Uid` of proc_pid_status(5); a folder in /proc has another owner where a process hides itself).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mrc_testbed.testbed.errors import MissingCapability, UsageError
from mrc_testbed.testbed.folders import user_named

_GET_USER_NAMESPACE, _GET_OWNER = 0xB701, 0xB704
"""ioctl_ns(2)."""


class Process:
    """The process that has this number now. Raises OSError where there is none; so does all that is read of it once it
    has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "_folder"):
            os.close(self._folder)

    def path(self, name: str) -> Path:
        """To what /proc has of it, as long as this object lives; also for programs that this process starts."""
        return Path(f"/proc/{os.getpid()}/fd/{self._folder}", name)

    @property
    def parent(self) -> int:
        """The number of its parent."""
        return parent_of(self.path("stat"))

    @property
    def users(self) -> set[int]:
        """Whose rights it has, had, or may take again."""
        lines = self.path("status").read_text(encoding="utf-8", errors="replace").splitlines()
        return {int(number) for line in lines if line.startswith("Uid:") for number in line.split()[1:]}

    def require_ours(self, what: str) -> None:
        """Nothing of another user's is entered: neither a process, nor namespaces that another user has made. Raises
        UsageError; MissingCapability for processes of root, where this is not root; OSError."""
        for user in sorted(self.users - {0, os.geteuid()}):
            raise UsageError(_of_another(what, user))
        for name in ("ns/mnt", "ns/net"):
            owner = self._owner_of(name)
            if owner not in (None, os.geteuid()):
                raise UsageError(_of_another(what, owner))

    def _owner_of(self, name: str) -> int | None:
        """Who made the user namespace that a namespace belongs to; None if that is this process's own."""
        opened = []
        try:
            opened.append(os.open(self.path(name), os.O_RDONLY | os.O_CLOEXEC))
            opened.append(fcntl.ioctl(opened[0], _GET_USER_NAMESPACE))
            if os.path.samestat(os.fstat(opened[1]), os.stat("/proc/self/ns/user")):
                return None
            return int.from_bytes(fcntl.ioctl(opened[1], _GET_OWNER, bytes(4)), "little")
        except PermissionError:
            why = "a prompt on the nodes of this run needs root"
            raise MissingCapability(why, "run the same command with sudo") from None
        finally:
            for file in opened:
                os.close(file)


def parent_of(stat: Path) -> int:
    """Raises OSError where the process has ended."""
    return int(stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])


def _of_another(what: str, user: int) -> str:
    return f"{what} belongs to {user_named(user)}, and nothing of another user's is entered: {as_user(user)}"


def as_user(number: int) -> str:
    """How to do the same as that user."""
    return f"give the command as that user (`sudo -u '#{number}' mrc-testbed ...`)"
