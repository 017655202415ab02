"""The user's state folder, with what the program knows about this machine."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

FOLDER = "mrc-testbed"


def state_paths(name: str) -> Iterator[Path]:
    """Paths to try for the file `name`, the one to write first: in the home of the user who called sudo.

    sudo removes XDG_STATE_HOME, and files saved with it must be found without it.
    """
    home = _home()
    given = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):
        yield Path(given) / FOLDER / name
    yield home / ".local" / "state" / FOLDER / name


def _home() -> Path:
    user = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and user.isdecimal():
        try:
            return Path(pwd.getpwuid(int(user)).pw_dir)
        except KeyError:
            pass
    return Path.home()
