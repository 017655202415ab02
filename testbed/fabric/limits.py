"""Open files that a fabric needs, against what this process may have."""

from __future__ import annotations

import resource
from pathlib import Path

from mrc_testbed.testbed.cpus import own_cgroups
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import privileges
from mrc_testbed.topos.shape import Shape

OPEN_FILES = 1 << 16
"""What root lifts the limit of open files to. A login shell allows 1024."""
_FILES_PER_NODE = 10
_FILES_PER_HOST = 3
_FILES_BESIDES = 60
"""Measured in the supervisor: all nodes are set up at once, and a fault may touch each of them."""


_PROCESSES_BESIDES = 24
"""The command, warden, supervisor, forker and delay line with their threads, and what the machine is asked by."""
_BGP_PER_SWITCH = 12
"""zebra, bgpd, bfdd and the script that holds them, with their threads."""
_CGROUPS, _OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def files_needed(shape: Shape) -> int:
    """Files that the supervisor of a fabric has open at once, at most."""
    return (shape.hosts + shape.switches) * _FILES_PER_NODE + shape.hosts * _FILES_PER_HOST + _FILES_BESIDES


def namespaces_needed(shape: Shape) -> dict[str, int]:
    """By kind: a network with its mounts a node, those of the sandbox, and a network to try things in."""
    nodes = shape.hosts + shape.switches
    own_user = {"user": 1} if privileges.needs_user_namespace() else {}
    return {**own_user, "net": nodes + 2, "mnt": nodes + 1, "pid": 1}


def processes_needed(shape: Shape, bgp: bool) -> int:
    """Processes and threads of a run at once, at most: while it is built, `ip` or `tc` runs beside the shell of each
    node; later daemons do."""
    nodes = shape.hosts + shape.switches
    daemons = shape.hosts + shape.switches * _BGP_PER_SWITCH * bgp
    return nodes + max(nodes, daemons) + _PROCESSES_BESIDES


def require_processes(needed: int, what: str, own: Path = _OWN_CGROUPS, mounted: Path = _CGROUPS) -> None:
    """Raises MissingCapability where a cgroup, or `ulimit -u`, has no room for as many processes as `what` needs."""
    for folder in own_cgroups(own, mounted, "pids"):
        most, now = (_number(folder / name) for name in ("pids.max", "pids.current"))
        if most is not None and most - (now or 0) < needed:
            raise MissingCapability(
                f"{what} needs about {needed:,} processes, and its cgroup has room for {most - (now or 0):,}"
                f" ({folder}/pids.max is {most:,})",
                "start the container with --pids-limit=-1, or run it by `systemd-run --scope -p TasksMax=infinity`",
            )
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    bound = not privileges.has_capability(privileges.SYS_RESOURCE)  # others are not held to it
    if bound and soft != resource.RLIM_INFINITY and soft < needed:
        within = hard == resource.RLIM_INFINITY or hard >= needed
        lift = f"`ulimit -u {needed}`" if within else f"`sudo prlimit --nproc={needed}:{needed} --pid $$`"
        raise MissingCapability(
            f"{what} needs about {needed:,} processes, and the limit (`ulimit -u`) is {soft:,}",
            f"{lift} lifts it for this shell",
        )


def _number(file: Path) -> int | None:
    """None where there is no such file, or no limit."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def files_allowed() -> int:
    """Files that a supervisor may have open at once: it lifts its soft limit to the hard one, and root that one too."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return OPEN_FILES
    may_lift = not privileges.is_rootless() and privileges.has_capability(privileges.SYS_RESOURCE)
    return max(hard, OPEN_FILES) if may_lift else hard


def lift_file_limit() -> None:
    """Let this process open as many files as it may."""
    allowed = files_allowed()
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(allowed, OPEN_FILES), allowed))


def require_files(needed: int, what: str) -> None:
    """Raises MissingCapability where this process may not open as many files as `what` needs."""
    allowed = files_allowed()
    if needed > allowed:
        raise MissingCapability(
            f"{what} needs {needed:,} open files, and the hard limit (`ulimit -Hn`) is {allowed:,}",
            f"`sudo prlimit --nofile={needed}:{needed} --pid $$` lifts it for this shell",
        )
