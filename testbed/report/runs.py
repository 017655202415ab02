"""The facts about each run in a list of runs, from its small files, in any state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.judge import VERDICT_FILE
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import TestbedError
from mrc_testbed.testbed.rundir.files import RecordError, read_json, refuse_strange_files
from mrc_testbed.testbed.rundir.ownership import abandoned, is_running
from mrc_testbed.testbed.rundir.results import COMPARE_FILE, began_s, comparison_folders, is_run_folder, run_folders
from mrc_testbed.testbed.scenario import SCENARIO_FILE

_ROW_CHARACTERS = 1000
"""Of a text from a file, whose length nobody checked."""


class RunState(StrEnum):
    """A verdict, or the reason why there is none; a comparison has a state of its own."""

    PASS = Status.PASS.value
    FAIL = Status.FAIL.value
    INCONCLUSIVE = Status.INCONCLUSIVE.value
    MEASURED = Status.MEASURED.value
    DIED = Status.DIED.value
    RUNNING = "running"
    KILLED = "killed"
    UNJUDGED = "no verdict"
    DAMAGED = "damaged"
    COMPARISON = "comparison"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A row. `headline`: the figures of its verdict line; `note`: why it is not a pass, or what is wrong with the
    folder.

    `size_bytes`: of all readable files. `world`: where it ran, "" where no file says it.
    """

    folder: Path
    scenario: str
    state: RunState
    headline: str
    note: str
    began_s: float
    size_bytes: int
    world: str = ""


def listed_runs(out: Path) -> list[ListedRun]:
    """Every run in `out`, oldest first. Raises UsageError if `out` is not a readable folder."""
    return [listed_run(folder) for folder in run_folders(out)]


def listed_results(out: Path) -> list[ListedRun]:
    """The same, including comparisons."""
    rows = [*listed_runs(out), *(listed_comparison(folder) for folder in comparison_folders(out))]
    return sorted(rows, key=lambda row: row.began_s)


def listed_comparison(folder: Path) -> ListedRun:
    """One comparison. Never raises because of its files."""
    try:
        refuse_strange_files(folder)
        document = read_json(folder / COMPARE_FILE)
        state, note = (RunState.COMPARISON, "") if document else (RunState.DAMAGED, f"{COMPARE_FILE} cannot be read")
    except (TestbedError, OSError) as error:
        document, state, note = None, RunState.DAMAGED, _without_folder(error, folder)
    title, headline = (_short((document or {}).get(key)) for key in ("title", "headline"))
    return ListedRun(folder, title or folder.name, state, headline, note, began_s(folder), _size(folder))


def listed_run(folder: Path) -> ListedRun:
    """One run. Never raises because of its files."""
    try:
        refuse_strange_files(folder)
        document = read_json(folder / VERDICT_FILE) or {}
        state, note = _state(folder, document)
        world = _short((read_json(folder / "environment.json") or {}).get("world"))
    except (TestbedError, OSError) as error:
        document, state, note, world = {}, RunState.DAMAGED, _without_folder(error, folder), ""
    scenario = _short(document.get("scenario")) or folder.name.partition("-")[2] or folder.name
    headline = _short(document.get("headline"))
    return ListedRun(folder, scenario, state, headline, _short(note), began_s(folder), _size(folder), world)


def _state(folder: Path, document: dict[str, Any]) -> tuple[RunState, str]:
    """Raises TestbedError or OSError if it cannot be read."""
    if is_running(folder):
        return RunState.RUNNING, ""
    if abandoned(folder):
        return RunState.KILLED, "`mrc-testbed clean` gives it a verdict"
    if not is_run_folder(folder):
        return RunState.DAMAGED, f"has no {SCENARIO_FILE}: it ended before it wrote one"
    if not (folder / VERDICT_FILE).exists():
        return RunState.UNJUDGED, ""
    try:
        return RunState(Status(document.get("verdict", "")).value), _reason(document)
    except ValueError:
        raise RecordError(folder / VERDICT_FILE, "is not a complete verdict") from None


def _reason(document: dict[str, Any]) -> str:
    """Empty for a pass, and if another version wrote the file differently."""
    try:
        return Verdict.from_dict(document).reason
    except (KeyError, TypeError, ValueError):
        return ""


def _without_folder(error: Exception, folder: Path) -> str:
    """The folder is shown beside it."""
    return str(error).replace(f"{folder}{os.sep}", "")


def _short(value: Any) -> str:
    """A text of a file, on one line, as long as a row has room for."""
    return " ".join(str(value)[:_ROW_CHARACTERS].split()) if value else ""


def _size(folder: Path) -> int:
    """Of all files in bytes, links not followed; what cannot be looked at is left out."""
    total, open_ = 0, [folder]
    while open_:
        try:
            entries = list(os.scandir(open_.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    open_.append(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue
    return total
