"""Where the program keeps what it knows about this machine: the state folder of the user."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

FOLDER = "mrc-testbed"


def state_paths(name: str) -> Iterator[Path]:
    """Where the file `name` may be, the place to write it first: in the home of the user who called sudo.

    sudo takes XDG_STATE_HOME away, so that what was saved without it must be found with it.
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
