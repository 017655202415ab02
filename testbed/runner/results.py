"""The results folder: which runs it holds, which of them a name means, and the link to the latest."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

from testbed.checks.language.scanner import did_you_mean
from testbed.checks.record import SCENARIO_FILE
from testbed.errors import RunError, UsageError
from testbed.runner.owned import give

RESULTS = Path("results")
LATEST = "latest"
STAMP = "%Y%m%dT%H%M%SZ"
"""How the name of a run folder begins: when the run began, in UTC."""


def run_folder(run: Path, out: Path = RESULTS) -> Path:
    """The folder that a user means by `run`: a path, or else the bare name of a run in `out`, or `latest` there.

    What comes back is the folder itself and not a link to it. Raises UsageError when there is none, or none of a run.
    """
    bare = run.name == str(run)
    places = [run, out / run] if bare else [run]
    for place in places:
        if is_run_folder(place):
            return _behind_link(place)
    existing = next((place for place in places if os.path.isdir(place)), None)
    if existing is not None:
        raise UsageError(f"{existing}: has no {SCENARIO_FILE}: is no run folder")
    hint = did_you_mean(str(run), [each.name for each in run_folders(out)]) if bare else ""
    raise UsageError(f"{run}: there is no such run folder{f', neither here nor in {out}' if bare else ''}{hint}")


def is_run_folder(folder: Path) -> bool:
    """A run was begun there. False also for what cannot be looked into."""
    return os.path.isfile(folder / SCENARIO_FILE)


def run_folders(out: Path) -> list[Path]:
    """The run folders in `out`, oldest first; links are not followed. None where `out` does not exist.

    Raises UsageError for what is no folder or cannot be read.
    """
    try:
        found = [Path(entry.path) for entry in os.scandir(out) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{out}: cannot be read: {error.strerror}") from None
    return sorted(filter(is_run_folder, found), key=_age_key)


def point_latest(folder: Path) -> None:
    """Let the link `latest` beside `folder` lead there; readers find the old run or the new one, at any moment.

    What is called so and is no link stays. Raises RunError when the link cannot be made; an old one is gone then.
    """
    link = folder.parent / LATEST
    if os.path.lexists(link) and not link.is_symlink():
        return
    beside = link.with_name(f".{LATEST}-{os.getpid()}")
    try:
        beside.symlink_to(folder.name)
        give([beside])
        beside.replace(link)
    except OSError as error:
        for each in (beside, link):
            with contextlib.suppress(OSError):
                each.unlink()
        raise RunError(f"cannot make the link {link}: {error.strerror}; the run goes on without it") from error


def _behind_link(folder: Path) -> Path:
    """Where a link leads; named from the same folder when it stays in it, as `latest` does."""
    if not folder.is_symlink():
        return folder
    target = folder.resolve()
    return folder.parent / target.name if target.parent == folder.parent.resolve() else target


def began_s(folder: Path) -> float:
    """When a run began, in seconds of the epoch: by its name, or else by its first file; 0 when nothing tells."""
    try:
        return datetime.strptime(folder.name.partition("-")[0], STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return _made_ns(folder) / 1e9


def _age_key(folder: Path) -> tuple[float, int, str]:
    return began_s(folder), _made_ns(folder), folder.name


def _made_ns(folder: Path) -> int:
    try:
        return (folder / SCENARIO_FILE).stat().st_mtime_ns
    except OSError:
        return 0
