"""The results folder: making folders in it, which runs it holds, which of them a name means, and the latest of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from testbed.errors import RunError, UsageError
from testbed.expect import did_you_mean
from testbed.rundir.ownership import give
from testbed.scenario import SCENARIO_FILE

RESULTS = Path("results")
LATEST = "latest"
LOGS = "logs"
COMPARE_FILE = "compare.json"
"""What makes a folder that of a comparison."""
PAPER_FILE = "paper.json"
"""What makes a folder that of a table of the paper's figures."""
STAMP = "%Y%m%dT%H%M%SZ"
"""How the name of a run folder begins: when the run began, in UTC."""


def create_folder(out: Path, name: str) -> Path:
    """The folder of a run of that name, with the folder for logs in it. Raises UsageError."""
    folder = new_folder(out, name)
    (folder / LOGS).mkdir()
    return folder


def new_folder(out: Path, name: str) -> Path:
    """`out/<UTC>-<name>`, with a number behind it when two begin in the same second. Raises UsageError.

    What is made on the way there belongs to the user who called sudo.
    """
    missing = [path for path in (out, *out.parents) if not path.exists()]
    stamp = datetime.now(UTC).strftime(STAMP)
    for number in range(1, 1000):
        folder = out / (f"{stamp}-{name}" if number == 1 else f"{stamp}-{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not out.is_dir():
                raise UsageError(f"--out {out}: is not a folder") from None
            continue
        except OSError as error:
            raise UsageError(f"--out {out}: cannot make a folder there: {error.strerror}") from error
        give(missing)
        return folder
    raise UsageError(f"--out {out}: too many runs of {name} began in this second")


def run_folder(run: Path, out: Path = RESULTS) -> Path:
    """The folder that a user means by `run`: a path, or else the bare name of a run in `out`, or `latest` there.

    What comes back is the folder itself and not a link to it. Raises UsageError when there is none, or none of a run.
    """
    places = _places(run, out)
    for place in places:
        if is_run_folder(place):
            return _behind_link(place)
    existing = next((place for place in places if os.path.isdir(place)), None)
    if existing is not None:
        raise UsageError(f"{existing}: has no {SCENARIO_FILE}: is no run folder")
    hint = did_you_mean(str(run), [each.name for each in run_folders(out)]) if len(places) > 1 else ""
    raise UsageError(
        f"{run}: there is no such run folder{f', neither here nor in {out}' if len(places) > 1 else ''}{hint}"
    )


def runs_among(names: Sequence[Path], out: Path = RESULTS) -> tuple[list[Path], list[str]]:
    """Those of several names, as `results/*` gives them, that may mean runs; and a line for each that is left out.

    A link beside what it leads to, as `latest` is, is not another run. Raises UsageError where nothing is left.
    """
    others = {name: other for name in names if (other := _other_than_a_run(name, out))}
    if len(others) == len(names):
        raise UsageError("\n".join(f"{name}: is {other} and no run" for name, other in others.items()))
    rest = [name for name in names if name not in others]
    places = {name.resolve() for name in rest if not name.is_symlink()}
    kept = [name for name in rest if not (name.is_symlink() and name.resolve() in places)]
    return kept, [f"{name}: is {other}, left out" for name, other in others.items()]


def _other_than_a_run(run: Path, out: Path) -> str:
    for place in _places(run, out):
        for name, what in ((COMPARE_FILE, "a comparison"), (PAPER_FILE, "a table of figures")):
            if os.path.isfile(place / name):
                return what
    return ""


def _places(run: Path, out: Path) -> list[Path]:
    """Where to look: a bare name may be one in `out`."""
    return [run, out / run] if run.name == str(run) else [run]


def is_run_folder(folder: Path) -> bool:
    """A run was begun there. False also for what cannot be looked into."""
    return os.path.isfile(folder / SCENARIO_FILE)


def is_comparison(folder: Path) -> bool:
    """Runs were compared there."""
    return os.path.isfile(folder / COMPARE_FILE)


def was_begun(folder: Path) -> bool:
    """As is_run_folder, and also what a run has left that could not even write its scenario."""
    return is_run_folder(folder) or (_stamp_s(folder) is not None and os.path.isdir(folder / LOGS))


def run_folders(out: Path) -> list[Path]:
    """The folders of runs in `out`, oldest first; links are not followed. None where `out` does not exist.

    Raises UsageError for what is no folder or cannot be read.
    """
    return _folders(out, was_begun)


def comparison_folders(out: Path) -> list[Path]:
    """The same of comparisons."""
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
        raise RunError(f"cannot make the link {link}: {error.strerror}") from error


def mend_latest(out: Path) -> None:
    """Where the run is gone that `latest` led to, let it lead to the newest that is there. Raises RunError."""
    link = out / LATEST
    if not link.is_symlink() or link.is_dir():
        return
    left = run_folders(out)
    if left:
        point_latest(left[-1])
    else:
        link.unlink()


def _behind_link(folder: Path) -> Path:
    """Where a link leads; named from the same folder when it stays in it, as `latest` does."""
    if not folder.is_symlink():
        return folder
    target = folder.resolve()
    return folder.parent / target.name if target.parent == folder.parent.resolve() else target


def began_s(folder: Path) -> float:
    """When a run began, in seconds of the epoch: by its name, or else by its first file; 0 when nothing tells."""
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
