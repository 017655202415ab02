"""Whose plugins are run when a run folder is read: those that this machine's user ran before.

A run folder is a thing that people send each other, and its plugins are code. `run` takes the files that a scenario
names for wanted, and notes their hashes. Reading a folder runs only copies whose hash was noted here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from testbed.state import state_paths

NOTES = "plugins.sha256"
TRUST = "MRC_TRUST_PLUGINS"
"""With this in the environment the plugins of any run folder are run."""


def is_trusted(sha256: str) -> bool:
    """Was a plugin with this content run here before, or is everything trusted?"""
    return os.environ.get(TRUST) == "1" or any(sha256 in _noted(path) for path in state_paths(NOTES))


def not_noted(hashes: Iterable[str]) -> list[str]:
    """Those that are still to be noted, each once."""
    return [each for each in dict.fromkeys(hashes) if not any(each in _noted(path) for path in state_paths(NOTES))]


def notes_file() -> Path:
    """Where hashes are noted, a line each."""
    return next(state_paths(NOTES))


def _noted(path: Path) -> set[str]:
    try:
        return set(path.read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):  # nothing is noted in a file that is not there or not ours
        return set()
