"""Files that are never half there, and that belong to the user who called sudo: they lie among that user's files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_USER_NUMBER = re.compile(r"[0-9]{1,9}")


def write_whole(path: Path, content: str) -> None:
    """Write beside it and move into place: readers see the old text or the new one. Raises OSError."""
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(content, encoding="utf-8")
    temporary.replace(path)


def write_given(path: Path, content: str) -> None:
    """write_whole for a file of the caller's; folders on the way to it are made. Raises OSError."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    give((*missing, path))


def give(paths: Iterable[Path]) -> None:
    """Make the user who called sudo the owner; nothing where sudo was not used. What sudo did not write (no number of a
    user) names nobody."""
    owner = [os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if os.geteuid() == 0 and all(_USER_NUMBER.fullmatch(number) for number in owner):
        for path in paths:
            os.chown(path, int(owner[0]), int(owner[1]), follow_symlinks=False)
