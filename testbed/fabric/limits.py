"""Open files that a fabric needs, against what this process may have."""

from __future__ import annotations

import resource

from testbed.errors import MissingCapability
from testbed.fabric import privileges
from topos.shape import Shape

OPEN_FILES = 1 << 16
"""What root lifts the limit of open files to. A login shell allows 1024."""
_FILES_PER_NODE = 9
_FILES_PER_HOST = 3
_FILES_BESIDES = 60
"""Measured in the supervisor: all nodes are set up at once, and a fault may touch each of them."""


def files_needed(shape: Shape) -> int:
    """Files that the supervisor of a fabric has open at once, at most."""
    return (shape.hosts + shape.switches) * _FILES_PER_NODE + shape.hosts * _FILES_PER_HOST + _FILES_BESIDES


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
