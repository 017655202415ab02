"""Which plugins are run when a run folder is read: those that this machine's user ran before.

People exchange run folders, and plugins in them are code. `run` trusts the files that a scenario names and records
their hashes. Reading a folder runs only copies with a recorded hash.
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
    """True if a plugin with this content was run here before, or everything is trusted."""
    return os.environ.get(TRUST) == "1" or any(sha256 in _noted(path) for path in state_paths(NOTES))


def not_noted(hashes: Iterable[str]) -> list[str]:
    """Hashes that are not recorded yet, each once."""
    return [each for each in dict.fromkeys(hashes) if not any(each in _noted(path) for path in state_paths(NOTES))]


def notes_file() -> Path:
    """The file of recorded hashes, one per line."""
    return next(state_paths(NOTES))


def _noted(path: Path) -> set[str]:
    try:
        return set(path.read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):  # nothing is noted in a file that is not there or not ours
        return set()
