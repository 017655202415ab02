"""Owner of a run folder: the user who called sudo; during the run also the process that writes it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from testbed.rundir.files import write_failed, write_whole
from testbed.rundir.processes import boot_id, process_start
from testbed.state import is_root

OWNER = "owner.json"
"""Names the process that writes this folder; removed once the verdict exists."""
_USER_NUMBER = re.compile(r"[0-9]{1,9}")


def write_given(path: Path, content: str) -> None:
    """Like write_whole, for a file that the caller owns; creates missing folders. Raises OSError."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    give((*missing, path))


def give(paths: Iterable[Path]) -> None:
    """Make the user who called sudo the owner; does nothing without sudo or with a SUDO_UID that is not a number."""
    owner = [os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if is_root() and all(_USER_NUMBER.fullmatch(number) for number in owner):
        for path in paths:
            os.chown(path, int(owner[0]), int(owner[1]), follow_symlinks=False)


def claim(folder: Path) -> None:
    """Note that this process writes the folder. Raises RunError."""
    pid, path = os.getpid(), folder / OWNER
    content = {"pid": pid, "started": process_start(pid), "boot": boot_id()}
    try:
        write_whole(path, json.dumps(content))
    except OSError as error:
        raise write_failed(path, error) from error


def release(folder: Path) -> None:
    """Removes the claim, after the verdict was written."""
    (folder / OWNER).unlink(missing_ok=True)


def hand_over(folder: Path) -> None:
    """Give the folder to the user who called sudo."""
    give((folder, *folder.rglob("*")))


def abandoned(folder: Path) -> bool:
    """True when a run was started here and its process no longer exists."""
    try:
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        return bool(owner["boot"] != boot_id() or owner["started"] != process_start(owner["pid"]))
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True  # incomplete: its writer was killed


def writer_of(folder: Path) -> int | None:
    """The process that writes the folder now; None where a run is over or was never begun."""
    if abandoned(folder):
        return None
    try:
        return int(json.loads((folder / OWNER).read_text(encoding="utf-8"))["pid"])
    except (OSError, ValueError):
        return None  # it has just ended
