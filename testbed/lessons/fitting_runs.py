"""The run folder of each cell: the one whose recorded scenario is the student's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import ScenarioError, TestbedError, UsageError
from mrc_testbed.testbed.lessons.beside import same_bytes
from mrc_testbed.testbed.lessons.fitting import CellScenario
from mrc_testbed.testbed.lessons.work import Work
from mrc_testbed.testbed.rundir.results import PROGRAMS_FOLDER, RESULTS, run_folder, run_folders
from mrc_testbed.testbed.scenario import Scenario, load_cells, load_recorded
from mrc_testbed.testbed.scenario.model.transports import WorldKind

_SAID_ONLY = ("name", "about")
"""Keys that change nothing in a run."""
_HOW = ("seed", "world", "scale")
"""Keys that a command line may give a run in place of the file's."""


def cells_of_work(work: Work, runs: Iterable[str], overrides: Sequence[str], seed: int | None) -> list[CellScenario]:
    """All cells that the student's scenarios of these runs have. Raises UsageError, ScenarioError."""
    return [
        CellScenario(run, tuple(map(str, cell.settings)), cell.scenario)
        for run in runs
        for cell in load_cells(work.scenario_file(run), overrides, seed)
    ]


def difference(wanted: Scenario, found: Scenario, but: Iterable[str] = ()) -> str:
    """The first key in which two scenarios are not the same; empty if none is."""
    mine, theirs = (one.as_written.model_dump(by_alias=True) for one in (wanted, found))
    ignored = {*_SAID_ONLY, *but}
    return next((key for key in mine if key not in ignored and mine[key] != theirs.get(key)), "")


def newest_run(out: Path, wanted: Scenario) -> Path | None:
    """The newest run in `out` of exactly this scenario, and of its programs as they are now."""
    for folder, found in _recorded(reversed(run_folders(out))):
        if not (difference(wanted, found) or changed_file(wanted, folder)):
            return folder
    return None


def changed_file(wanted: Scenario, folder: Path) -> str:
    """The first file of its programs that is another than the copy in a run folder; empty if none is."""
    names = (name for job in wanted.job.programs for name in job.entry.files)
    return next(
        (name for name in names if not same_bytes(Path(wanted.file).parent / name, folder / PROGRAMS_FOLDER / name)), ""
    )


def _recorded(folders: Iterable[Path]) -> Iterator[tuple[Path, Scenario]]:
    for folder in folders:
        try:
            yield folder, load_recorded(folder)
        except TestbedError:  # a run that a kill cut off, or of another version
            continue


def given_runs(work: Work, of: Iterable[str], names: Sequence[Path]) -> list[tuple[CellScenario, Path]]:
    """A run for every cell of the student's scenarios of these runs, of those that were named. Seed and world are the
    run's own, but for students whose seed is drawn from their name. Raises UsageError for a run of another scenario,
    and for a cell without one."""
    runs = dict(_named(name) for name in names)
    how = [_how(work, found) for found in runs.values()]
    found: list[tuple[CellScenario, Path]] = []
    for cell in cells_of_work(work, of, *(how[0] if how else ([], None))):
        differs = {path: _differs(cell.scenario, path, one) for path, one in runs.items()}
        fitting = [path for path, what in differs.items() if not what]
        if not fitting:
            path, key = next(iter(differs.items()))
            file = work.scenario_file(cell.run)
            raise UsageError(
                f"{path}: is no run of {file}: {key} differs; run the file as it is now, or leave --run out"
            )
        found.append((cell, fitting[-1]))
    return found


def _differs(wanted: Scenario, folder: Path, found: Scenario) -> str:
    return difference(wanted, found, _HOW) or changed_file(wanted, folder)


def _named(name: Path) -> tuple[Path, Scenario]:
    folder = run_folder(name, RESULTS)
    try:
        return folder, load_recorded(folder)
    except ScenarioError as error:
        raise UsageError(f"{folder}: its scenario cannot be read: {error.problems[0].message}") from None


def _how(work: Work, found: Scenario) -> tuple[list[str], int]:
    if work.seed is not None and found.seed != work.seed:
        raise UsageError(f"--run: was run with seed {found.seed}; that of {work.student} is {work.seed}")
    changes: list[Any] = [f"world={WorldKind(found.world).value}"]
    return changes, found.seed
