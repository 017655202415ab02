"""Where a program of the user finds its own folders on its host."""

from __future__ import annotations

from pathlib import Path

TMP = Path("/tmp")
"""Its own; nothing of the machine's is in it but what the program consists of."""
WORK = TMP / "work"
"""Where it starts, with its files."""
HOME = TMP / "home"
