"""What this process may do on this machine, and why the kernel lets it have no namespaces of its own.

Root of the machine may make all namespaces. Anybody else is root in a user namespace of their own, if the kernel and
what guards it let them: a run is then *rootless*. Source: user_namespaces(7), capabilities(7), namespaces(7).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.topos.units import plural

DAC_OVERRIDE, DAC_READ_SEARCH, NET_ADMIN, SYS_ADMIN, SYS_RESOURCE = 1, 2, 12, 21, 24
"""Numbers of capabilities (linux/capability.h)."""
_FIRST_USER_NAMESPACE = 0xEFFFFFFD
"""Inode of the user namespace that the kernel booted with (linux/proc_ns.h)."""
_SUDO = "run with sudo"
_GUARDS = (
    ("kernel.unprivileged_userns_clone", 0, 1),
    ("kernel.apparmor_restrict_unprivileged_userns", 1, 0),
)
"""Sysctls that keep user namespaces from ordinary users: name, the value that does, the value that does not."""
_LIMITS = ("user", "net", "mnt", "pid")
_ENOUGH_NAMESPACES = 10_000
_NO_ROOM = (errno.ENOSPC, errno.EUSERS)
_SECCOMP_FILTER = "2"


def has_capability(number: int) -> bool:
    """True if this process has it, in its own user namespace."""
    return bool(int(_status("CapEff"), 16) >> number & 1)


def is_rootless() -> bool:
    """True where a sandbox of this process is not, or would not be, that of root of the machine."""
    return needs_user_namespace() or _user_namespace() != _FIRST_USER_NAMESPACE


def _user_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/user").st_ino
    except FileNotFoundError:  # a kernel without them
        return _FIRST_USER_NAMESPACE


def needs_user_namespace() -> bool:
    """True for who may make other namespaces only as root of a user namespace of their own."""
    return os.geteuid() != 0 or not (has_capability(SYS_ADMIN) and has_capability(NET_ADMIN))


def become_root_of_own(uid: int, gid: int) -> None:
    """Map user 0 and group 0 of a fresh user namespace to these outside. Raises OSError."""
    for name, content in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        Path("/proc/self", name).write_text(content, encoding="ascii")


def can_be_given_to(uid: int, gid: int) -> bool:
    """True if this user namespace has such a user and group."""
    return _user_namespace() == _FIRST_USER_NAMESPACE or (_maps("uid_map", uid) and _maps("gid_map", gid))


def _maps(name: str, number: int) -> bool:
    rows = (map(int, line.split()) for line in Path("/proc/self", name).read_text(encoding="ascii").splitlines())
    return any(first <= number < first + count for first, _, count in rows)


def closed_to_own(path: Path) -> Path | None:
    """The folder on the way to `path` that root of a fresh user namespace of this user's may not enter; None without.

    Rights over the files of other users end where that namespace begins (user_namespaces(7)).
    """
    if not (has_capability(DAC_OVERRIDE) or has_capability(DAC_READ_SEARCH)):
        return None  # what is closed then is closed now
    above = [each for each in reversed((path.absolute() / "in").parents) if each.exists()]
    return next((each for each in above if not _enters(each)), None)


def _enters(folder: Path) -> bool:
    at = folder.stat()
    if at.st_uid == os.geteuid():
        return bool(at.st_mode & stat.S_IXUSR)
    own_group = at.st_gid in (os.getegid(), *os.getgroups())
    return bool(at.st_mode & (stat.S_IXGRP if own_group else stat.S_IXOTH))


def refusal(what: str, number: int) -> MissingCapability:
    """Why the kernel, asked for `what`, answered with this errno, as far as that can be found out, and the fix."""
    for reason, fix in _reasons(number):
        return MissingCapability(reason, fix)
    fix = _SUDO if is_rootless() else "run as root, outside restricted containers, with / a mount point"
    return MissingCapability(f"the kernel refused {what}: {os.strerror(number)}", fix)


def _reasons(number: int) -> Iterator[tuple[str, str]]:
    if number in _NO_ROOM:
        for kind in _LIMITS:
            name = _limit_of(kind)
            if _sysctl(name) == 0:
                yield f"this machine allows no {kind} namespaces ({name} is 0)", _set(name, _ENOUGH_NAMESPACES)
        few = {_limit_of(kind): namespaces_allowed(kind) for kind in _LIMITS}
        few = {name: limit for name, limit in few.items() if limit < _ENOUGH_NAMESPACES}
        told = f" ({', '.join(f'{name} is {limit}' for name, limit in few.items())})" if few else ""
        raised = f", or `sudo sysctl {' '.join(f'{name}={_ENOUGH_NAMESPACES}' for name in few)}`" if few else ""
        what = "there are as many namespaces as this machine allows, or as may be inside each other"
        yield f"{what}{told}", f"end some runs{raised}"
    if number != errno.EPERM:
        return
    if is_rootless():
        for name, closed, opened in _GUARDS:
            if _sysctl(name) == closed:
                yield f"this machine keeps user namespaces from ordinary users ({name} is {closed})", _set(name, opened)
    if _status("Seccomp") == _SECCOMP_FILTER:
        yield (
            "the seccomp filter of a container or service forbids namespaces",
            "start the container with --privileged",
        )


def _limit_of(kind: str) -> str:
    """The sysctl that limits namespaces of this kind."""
    return f"user.max_{kind}_namespaces"


def namespaces_allowed(kind: str) -> int:
    """How many namespaces of a kind (`user`, `net`, `mnt`, `pid`) this user may make here, those in use included."""
    limit = _sysctl(_limit_of(kind))
    return _ENOUGH_NAMESPACES if limit is None else limit


def require_namespaces(needed: Mapping[str, int], what: str) -> None:
    """Raises MissingCapability where this machine allows fewer namespaces of a kind than `what` needs."""
    for kind, count in needed.items():
        allowed = namespaces_allowed(kind)
        if allowed < count:
            name = _limit_of(kind)
            raise MissingCapability(
                f"{what} needs {plural(count, f'{kind} namespace')}, and this machine allows {allowed:,} ({name})",
                _set(name, _ENOUGH_NAMESPACES),
            )


def _set(name: str, value: int) -> str:
    return f"`sudo sysctl {name}={value}`" + (f", or {_SUDO}" if is_rootless() else "")


def _sysctl(name: str) -> int | None:
    """None where this kernel has no such setting."""
    try:
        return int(Path("/proc/sys", name.replace(".", "/")).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _status(key: str) -> str:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{key}:"):
            return line.split()[1]
    return "0"  # a kernel without it
