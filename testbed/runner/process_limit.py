"""How many processes a sandbox may have while programs of the user run. The kernel holds it, however late we are.

From Linux 6.14 on each PID namespace has a pid_max of its own (pid_namespaces(7)). Before, it is the machine's, and is
left alone: then a program with too many processes is only found and killed.
"""

from __future__ import annotations

import os
from pathlib import Path

SINCE = (6, 14)
ROOM, OF_EACH = 8192, 64
"""Processes that all programs may have together, and more for each program."""
_PID_MAX = Path("/proc/sys/kernel/pid_max")


def bound_processes(programs: int) -> bool:
    """Of this PID namespace, from now on. False where it cannot be: an older kernel, or no right to (without root)."""
    if _release() < SINCE:
        return False
    highest = max(int(name) for name in os.listdir("/proc") if name.isdigit())
    try:
        allowed = int(_PID_MAX.read_text(encoding="ascii"))
        _PID_MAX.write_text(str(min(allowed, highest + ROOM + OF_EACH * programs)), encoding="ascii")
    except OSError:
        return False
    return True


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
