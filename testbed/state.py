"""The user's state folder, with what the program knows about this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = "mrc-testbed"
_USER_NUMBER = re.compile(r"[0-9]{1,9}")


def state_paths(name: str) -> Iterator[Path]:
    """Paths to try for the file `name`, the one to write first: in the home of the user who called sudo.

    sudo removes XDG_STATE_HOME, and files saved with it must be found without it.
    """
    home = _home()
    given = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):
        yield Path(given) / FOLDER / name
    yield home / ".local" / "state" / FOLDER / name


def is_root() -> bool:
    """True for the user who may do anything; not every system has one."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def sudo_caller() -> tuple[int, int] | None:
    """The numbers of the user who called sudo, and of their group. None without sudo, or for what is no number."""
    numbers = [os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if not (is_root() and all(_USER_NUMBER.fullmatch(number) for number in numbers)):
        return None
    return int(numbers[0]), int(numbers[1])


def _home() -> Path:
    user = os.environ.get("SUDO_UID", "")
    if is_root() and user.isdecimal():
        import pwd  # Windows has neither root nor this module

        try:
            return Path(pwd.getpwuid(int(user)).pw_dir)
        except KeyError:
            pass
    return Path.home()
