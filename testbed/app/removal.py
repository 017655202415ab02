"""Removing runs: which ones are meant, whether they may go, taking them away. Nothing outside the results folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.folders import hold, let_go
from mrc_testbed.testbed.report.runs import ListedRun, RunState, listed_comparison, listed_run, listed_runs
from mrc_testbed.testbed.rundir.ownership import is_running
from mrc_testbed.testbed.rundir.results import is_comparison, mend_latest, run_folder, was_begun

_AGE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|d|w)\s*")
_UNITS_S = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True, slots=True)
class RunSelection:
    """Selects runs to remove: all that meet every criterion, but never the `keep` newest.

    None disables a criterion.
    """

    keep: int | None = None
    older_than_s: float | None = None
    state: RunState | None = None

    @property
    def empty(self) -> bool:
        """Nothing was asked for."""
        return self == RunSelection()


def parse_age(text: str) -> float:
    """`7d`, `36h`, `90 min`, in seconds. Raises UsageError."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise UsageError(f"--older-than {text}: write a number and one of {' '.join(_UNITS_S)}, as in 7d")
    return float(found[1]) * _UNITS_S[found[2]]


def selected(out: Path, selection: RunSelection, now_s: float) -> list[ListedRun]:
    """The runs in `out` that are to go; of those that are still going on none. Raises UsageError as run_folders."""
    runs = listed_runs(out)
    old = runs[: max(0, len(runs) - selection.keep)] if selection.keep is not None else runs
    return [
        run
        for run in old
        if run.state is not RunState.RUNNING
        and selection.state in (None, run.state)
        and (selection.older_than_s is None or now_s - run.began_s > selection.older_than_s)
    ]


def named(out: Path, names: Sequence[Path]) -> list[ListedRun]:
    """The runs that a user named. Raises UsageError for the first that is none, lies elsewhere or is still going on."""
    folders = dict.fromkeys(_removable(out, name) for name in names)
    return [(listed_comparison if is_comparison(folder) else listed_run)(folder) for folder in folders]


def _removable(out: Path, name: Path) -> Path:
    folder = _folder(out, name)
    if folder.parent.resolve() != out.resolve():
        raise UsageError(f"{name}: lies not in {out}; name its results folder with --out")
    if folder.is_symlink():
        raise UsageError(f"{name}: is a link; name the folder that it leads to")
    if is_running(folder):
        raise UsageError(f"{folder}: this run is still going on")
    return folder


def _folder(out: Path, name: Path) -> Path:
    """Also a comparison, and what is left of a run that wrote no scenario, which other commands cannot use."""
    half = out / name if name.name == str(name) else name
    ours = was_begun(half) or is_comparison(half)
    return half if ours and not half.is_symlink() else run_folder(name, out)


def remove(out: Path, runs: Sequence[ListedRun]) -> None:
    """Take their folders away, and let `latest` lead to what is left. Links in them go, what they lead to stays.

    Raises RunError when something cannot be removed; the others are gone then.
    """
    failures, held = [], hold(out)
    for run in runs:
        try:
            let_go(run.folder)
            shutil.rmtree(held / run.folder.name)
        except OSError as error:
            where = str(error.filename or run.folder).replace(os.fspath(held).removesuffix("."), f"{out}/", 1)
            failures.append(f"{where}: {error.strerror}")
        except RecursionError:
            failures.append(f"{run.folder}: its folders are nested too deeply; use rm -r")
    mend_latest(out)
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise RunError(f"cannot remove {failures[0]}{more}")
