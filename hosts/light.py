"""The least share of the CPU for a session of processes, beside others.

Where the kernel groups tasks by session (autogroups), a session has a share of its own, and the priority of a task,
also SCHED_IDLE, counts inside its session alone. The nice value of the session says how much it weighs. Source:
sched(7).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

_LEAST = "19"


def lighten_session(pid: int) -> None:
    """That of this process. Nothing happens where it has ended, where there are no autogroups, or where this user has
    changed one a moment ago."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(_LEAST, encoding="ascii")
