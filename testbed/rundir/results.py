"""The results folder: creating run folders, listing them, finding one by name, and the link `latest`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mrc_testbed.testbed.errors import RunError, TestbedError, UsageError, lack_of
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.folders import hold, make_own
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario import SCENARIO_FILE

RESULTS = Path("results")
LATEST = "latest"
LOGS = "logs"
PROGRAMS_FOLDER = "programs"
"""In a run folder: the output of every program of the user, and copies of their files."""
COMPARE_FILE = "compare.json"
"""The file that marks a comparison folder."""
PAPER_FILE = "paper.json"
"""The file that marks a folder of the paper's figures."""
STAMP = "%Y%m%dT%H%M%SZ"
"""Start of a run folder's name: start time in UTC."""


def create_folder(out: Path, name: str) -> Path:
    """The folder of a run of that name, with a folder for logs. Raises UsageError, RunError."""
    folder = new_folder(out, name)
    try:
        (folder / LOGS).mkdir()
    except OSError as error:
        raise _cannot_make(out, error) from error
    return folder


def new_folder(out: Path, name: str) -> Path:
    """`out/<UTC>-<name>`, with a number appended if it exists. Raises UsageError, RunError for a disk that is full or
    broken.

    New parent folders belong to the user who called sudo.
    """
    missing_folders(out)
    try:
        missing = make_own(out)
    except FileExistsError:
        raise UsageError(f"--out {out}: is not a folder") from None
    except OSError as error:
        raise _cannot_make(out, error) from error
    stamp = datetime.now(UTC).strftime(STAMP)
    for number in range(1, 1000):
        folder = out / (f"{stamp}-{name}" if number == 1 else f"{stamp}-{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise _cannot_make(out, error) from error
        give(missing)
        return folder
    raise UsageError(f"--out {out}: too many runs of {name} began in this second")


def missing_folders(out: Path) -> list[Path]:
    """Of `--out` and the folders above it those that are not there yet. Raises UsageError where it cannot be one."""
    try:
        missing = [path for path in (out, *out.parents) if not path.exists()]
    except OSError as error:  # such as a name that is too long
        raise UsageError(f"--out {out}: cannot be a folder: {error.strerror}") from error
    there = next((path for path in (out, *out.parents) if path not in missing), None)
    if there and not there.is_dir():
        raise UsageError(f"--out {out}: {'' if there == out else f'{there} '}is not a folder")
    return missing


def _cannot_make(out: Path, error: OSError) -> TestbedError:
    """Another folder helps where this one cannot be written, but not where the machine is at its end."""
    kind = RunError if lack_of(error) else UsageError
    return kind(f"--out {out}: cannot make a folder there: {error.strerror}")


def run_folder(run: Path, out: Path = RESULTS) -> Path:
    """The folder that the user means by `run`: a path, the name of a run in `out`, or `latest` there.

    Links are resolved, and the folder is held. Raises UsageError if there is no such folder, or no run in it.
    """
    places = _places(run, out)
    for place in places:
        if is_run_folder(place):
            return hold(_behind_link(place))
    existing = next((place for place in places if os.path.isdir(place)), None)
    if existing is not None:
        raise UsageError(f"{existing}: has no {SCENARIO_FILE}: not a run folder")
    hint = did_you_mean(str(run), [each.name for each in run_folders(out)]) if len(places) > 1 else ""
    raise UsageError(f"{run}: no such run folder{f' here or in {out}' if len(places) > 1 else ''}{hint}")


def runs_among(names: Sequence[Path], out: Path = RESULTS) -> tuple[list[Path], list[str]]:
    """The runs among several names, as from `results/*`, and a line for each name that is skipped.

    A link is skipped when its target is also named. Raises UsageError if no run remains.
    """
    others = {name: other for name in names if (other := _other_than_a_run(name, out))}
    if len(others) == len(names):
        raise UsageError("\n".join(f"{name}: is {other}, not a run" for name, other in others.items()))
    rest = [name for name in names if name not in others]
    places = {name.resolve() for name in rest if not name.is_symlink()}
    kept = [name for name in rest if not (name.is_symlink() and name.resolve() in places)]
    return kept, [f"{name}: is {other}, skipped" for name, other in others.items()]


def _other_than_a_run(run: Path, out: Path) -> str:
    for place in _places(run, out):
        for name, what in ((COMPARE_FILE, "a comparison"), (PAPER_FILE, "a table of figures")):
            if os.path.isfile(place / name):
                return what
    return ""


def _places(run: Path, out: Path) -> list[Path]:
    """Candidate paths: as given, and in `out` for a bare name."""
    return [run, out / run] if run.name == str(run) else [run]


def is_run_folder(folder: Path) -> bool:
    """True if a run was started there; False also for an unreadable folder."""
    return os.path.isfile(folder / SCENARIO_FILE)


def is_comparison(folder: Path) -> bool:
    """True for the folder of a comparison."""
    return os.path.isfile(folder / COMPARE_FILE)


def was_begun(folder: Path) -> bool:
    """As is_run_folder, but also True for a run that could not even write its scenario."""
    return is_run_folder(folder) or (_stamp_s(folder) is not None and os.path.isdir(folder / LOGS))


def run_folders(out: Path) -> list[Path]:
    """The run folders in `out`, oldest first; links are not followed. None if `out` does not exist.

    Raises UsageError for a path that is not a readable folder.
    """
    return _folders(out, was_begun)


def comparison_folders(out: Path) -> list[Path]:
    """The comparison folders in `out`."""
    return _folders(out, is_comparison)


def _folders(out: Path, wanted: Callable[[Path], bool]) -> list[Path]:
    try:
        found = [Path(entry.path) for entry in os.scandir(out) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{out}: cannot be read: {error.strerror}") from None
    return sorted(filter(wanted, found), key=_age_key)


def point_latest(folder: Path) -> None:
    """Point the link `latest` beside `folder` to it. Raises RunError."""
    point(folder, LATEST)


def point(folder: Path, name: str) -> None:
    """Point the link `name` beside `folder` to it, atomically.

    Leaves anything else of that name alone. Raises RunError if the link cannot be made; the old link may then be gone.
    """
    link = folder.parent / name
    if os.path.lexists(link) and not link.is_symlink():
        return
    beside = link.with_name(f".{name}-{os.getpid()}")
    try:
        beside.symlink_to(folder.name)
        give([beside])
        beside.replace(link)
    except OSError as error:
        for each in (beside, link):
            with contextlib.suppress(OSError):
                each.unlink()
        raise RunError(f"cannot make the link {link}: {error.strerror}") from error


def mend_latest(out: Path) -> None:
    """If the target of `latest` is gone, point it to the newest remaining run. Raises RunError."""
    link = out / LATEST
    if not link.is_symlink() or link.is_dir():
        return
    left = run_folders(out)
    if left:
        point_latest(left[-1])
    else:
        link.unlink()


def _behind_link(folder: Path) -> Path:
    """The target of a link, named relative to the same folder if it stays in it."""
    if not folder.is_symlink():
        return folder
    target = folder.resolve()
    return folder.parent / target.name if target.parent == folder.parent.resolve() else target


def began_s(folder: Path) -> float:
    """Start of a run in seconds of the epoch: from its name, else from its oldest file; 0 if unknown."""
    named = _stamp_s(folder)
    return _made_ns(folder) / 1e9 if named is None else named


def _stamp_s(folder: Path) -> float | None:
    try:
        return datetime.strptime(folder.name.partition("-")[0], STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _age_key(folder: Path) -> tuple[float, int, str]:
    return began_s(folder), _made_ns(folder), folder.name


def _made_ns(folder: Path) -> int:
    try:
        return (folder / SCENARIO_FILE).stat().st_mtime_ns
    except OSError:
        return 0
