"""Where a program of the user finds its own folders on its host, and the socket of its run."""

from __future__ import annotations

from pathlib import Path

TMP = Path("/tmp")
"""Its own; nothing of the machine's is in it but what the program consists of."""
WORK = TMP / "work"
"""Where it starts, with its files."""
HOME = TMP / "home"
PRIVATE = Path("/dev/shm/mrc-testbed")
"""Of a run, whose processes alone see it."""
SOCKET = PRIVATE / "exec"
"""By which a command is started on any host of the run."""
