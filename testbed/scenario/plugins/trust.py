"""Which plugins may be run: the one rule of all commands.

Plugins are code, and people send each other folders. Who calls a command that carries a scenario out or checks it
(`run`, `validate`) asks for the files beside it, and their hashes are noted. Every other command runs only what is
noted, and so does every command with the copies in the folder of a run or of a sweep. A source is judged by the bytes
that would be run: what becomes of its file meanwhile does not matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mrc_testbed.testbed.consent import TRUST, Consent
from mrc_testbed.testbed.scenario.model.offered import PluginMistake, PluginSource
from mrc_testbed.testbed.state import state_paths

NOTES = "plugins.sha256"


def require_trust(source: PluginSource, is_copy: bool) -> None:
    """Raises PluginMistake for code that may not be run. `is_copy`: it came with the folder of a run or of a sweep.
    Packages were installed by somebody who may."""
    if source.module or (Consent.of_scenarios and not is_copy) or is_trusted(source.sha256):
        return
    known = f"{TRUST}=1 in the environment runs it" if is_copy else "`mrc-testbed validate` of its scenario runs it"
    raise PluginMistake(f"{source.file} is code that was never run on this machine; read it: {known}")


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
