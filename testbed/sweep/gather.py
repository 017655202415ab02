"""What a sweep came to: the tries of several folders brought together, comparisons, tables, and one exit status.

Everything is read from cell.json of each try; run folders are opened only where a comparison draws them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.comparison import Compared, write_comparison
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.report.outcome import Case, RunOutcome, gravest
from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.scenario import Scenario, load_recorded
from mrc_testbed.testbed.scenario.cells.cells import SettingNames
from mrc_testbed.testbed.sweep.code import version_words
from mrc_testbed.testbed.sweep.evidence import ALL, CELL_FILE, pack
from mrc_testbed.testbed.sweep.folder import SCENARIOS, CellTry, SweepCell, SweepFolder


@dataclass(frozen=True)
class GatheredCell:
    """A cell and all tries of it. The one that counts: the believed one, else the last."""

    cell: SweepCell
    home: SweepFolder
    tries: tuple[CellTry, ...]

    @cached_property
    def believed(self) -> CellTry | None:
        """The first conclusive try."""
        return next((one for one in self.tries if one.believed), None)

    @property
    def exit_code(self) -> ExitCode:
        """Of the try that counts. Unknown is never pass: a cell that was not run is inconclusive."""
        counts = self.believed or (self.tries[-1] if self.tries else None)
        return counts.exit_code if counts else ExitCode.INCONCLUSIVE

    @property
    def word(self) -> str:
        """Its verdict."""
        counts = self.believed or (self.tries[-1] if self.tries else None)
        return str(counts.document["verdict"]) if counts else "not run"


@dataclass(frozen=True)
class Gathered:
    """All cells of a sweep, in its order."""

    folder: SweepFolder
    cells: tuple[GatheredCell, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The most serious one, as of several runs."""
        return gravest(cell.exit_code for cell in self.cells)

    @property
    def totals(self) -> str:
        """`100 cells: 98 pass, 2 not run`."""
        counts = Counter(cell.word for cell in self.cells)
        return f"{len(self.cells)} cells: " + ", ".join(f"{count} {word}" for word, count in counts.most_common())

    def believed(self) -> Iterator[CellTry]:
        """One a cell at most."""
        return (cell.believed for cell in self.cells if cell.believed)


def gather(path: Path, more: Sequence[Path], mixed: bool = False) -> Gathered:
    """Bring the tries of other folders of the same sweep into `path`, and read all. `mixed`: cells of other sweeps and
    of several versions are shown side by side, as asked for, and stay where they are.

    Raises UsageError where they would not be comparable; then nothing was written.
    """
    folder = SweepFolder(path)
    own = _cells_of(folder)
    parts = [cell for other in map(SweepFolder, more) for cell in _cells_of(other)]
    strangers = [strange for part in parts if (strange := _strange(folder, part))]
    if not mixed:
        if strangers:
            raise UsageError(_why_strange(folder, strangers[0]))
        _refuse_mixtures(folder, (*own, *parts))
    for part in parts:
        _bring(folder, part)
    return Gathered(folder, (*(_cells_of(folder) if parts else own), *strangers))


def _cells_of(folder: SweepFolder) -> list[GatheredCell]:
    return [GatheredCell(cell, folder, tuple(folder.tries(cell))) for cell in folder.cells]


def _version(home: SweepFolder, one: CellTry | None) -> str:
    """Of the code that made a try. One without a verdict does not say it: then it is that of its sweep, as without a
    try."""
    return version_words(one.document if one and "version" in one.document else home.about)


def _is_kin(folder: SweepFolder, part: GatheredCell, one: CellTry | None) -> bool:
    """It may be among the tries of the folder. The id of a cell says nothing of the version."""
    return part.cell.id in folder.by_id and _version(part.home, one) == version_words(folder.about)


def _strange(folder: SweepFolder, part: GatheredCell) -> GatheredCell | None:
    """What of a cell does not belong to the folder, if anything."""
    strange = tuple(one for one in part.tries if not _is_kin(folder, part, one))
    if strange or not _is_kin(folder, part, None):
        return GatheredCell(part.cell, part.home, strange)
    return None


def _why_strange(folder: SweepFolder, strange: GatheredCell) -> str:
    cell, mixed = strange.cell, "--mixed gathers them side by side"
    if cell.id not in folder.by_id:
        return (
            f"{strange.home.path}: cell {cell.id} ({cell.name}) is none of {folder.path}: it has another scenario;"
            f" {mixed}"
        )
    one = strange.tries[0] if strange.tries else None
    return (
        f"{one.folder if one else strange.home.path}: is of mrc-testbed {_version(strange.home, one)}, and"
        f" {folder.path} of {version_words(folder.about)}; {mixed}"
    )


def _bring(folder: SweepFolder, part: GatheredCell) -> None:
    """Those that belong to it and are not there yet, however often they are brought."""
    for one in part.tries:
        if _is_kin(folder, part, one):
            there = [_plain(kept.document) for kept in folder.tries(one.cell)]
            if _plain(one.document) not in there:
                folder.keep(one.cell, one.document, pack(one.folder, ALL))


def _plain(document: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if key != "try"}


def _refuse_mixtures(folder: SweepFolder, cells: Iterable[GatheredCell]) -> None:
    versions: dict[str, CellTry] = {}
    for cell in cells:
        one = cell.believed
        if one is None:
            continue
        versions.setdefault(_version(cell.home, one), one)
        ran = (one.document.get("run") or {}).get("scenario_sha256", one.cell.sha256)
        if ran != one.cell.sha256:
            raise UsageError(f"{one.folder}: ran another scenario than was planned; --mixed gathers it nevertheless")
    if len(versions) > 1:
        told = "; ".join(f"{words}, as in {one.folder}" for words, one in versions.items())
        raise UsageError(f"{folder.path}: cells are of several versions: {told}; --mixed gathers them")


def compared_runs(found: Gathered, file: str) -> list[ComparedRun]:
    """The believed runs of the cells of a scenario file; those of several versions are no repeats. Raises RecordError
    for a malformed cell.json."""
    there = [one for one in found.believed() if one.cell.file == file and one.document.get("run")]
    runs = [
        ComparedRun.from_cell(one.document["run"], one.folder, str((one.document.get("machine") or {}).get("host", "")))
        for one in there
    ]
    names = _setting_names(found)
    cells = [[names.setting(*setting) for setting in one.cell.settings.items()] for one in there]
    runs = [run.in_cell(cell) for run, cell in zip(runs, cells, strict=True)]
    versions = [version_words(one.document) for one in there]
    if len(set(versions)) < 2:
        return runs
    return [run.on_side(version) for run, version in zip(runs, versions, strict=True)]


def matrix_files(found: Gathered) -> list[str]:
    """Scenario files whose cells differ in a setting."""
    return list(dict.fromkeys(cell.cell.file for cell in found.cells if cell.cell.settings))


def compare_cells(found: Gathered, file: str) -> Compared | None:
    """The comparison of the cells of a file, in a folder of its own in the sweep; None for fewer than two runs."""
    runs = compared_runs(found, file)
    if len(runs) < 2:
        return None
    return write_comparison(runs, None, found.folder.path, f"mrc-testbed sweep gather {found.folder.path}")


def _setting_names(found: Gathered) -> SettingNames:
    values: dict[str, list[Any]] = {}
    for cell in found.cells:
        for key, value in cell.cell.settings.items():
            values.setdefault(key, []).append(value)
    return SettingNames(values)


class Cases:
    """Cells as the cases of `run`, for its reports. Scenarios of one setting are loaded once, whatever their seed."""

    def __init__(self, found: Gathered) -> None:
        self._found = found
        self._loaded: dict[str, Scenario] = {}
        self._names = _setting_names(found)
        self._repeats: Counter[str] = Counter()
        for one in found.cells:
            self._repeats[_same(one.cell)] = max(self._repeats[_same(one.cell)], one.cell.number)

    def all(self) -> list[Case]:
        """Of each cell. Raises ScenarioError."""
        return [self._case(cell) for cell in self._found.cells]

    def _case(self, found: GatheredCell) -> Case:
        cell = found.cell
        settings = tuple(self._names.setting(key, value) for key, value in cell.settings.items())
        last = found.believed or (found.tries[-1] if found.tries else None)
        tries = found.tries[: found.tries.index(last) + 1] if last else ()
        repeats = self._repeats[_same(cell)]
        outcomes = tuple(map(_outcome, tries))
        return Case(Path(cell.file), self._scenario(found), cell.number, repeats, outcomes, settings)

    def _scenario(self, found: GatheredCell) -> Scenario:
        cell, same = found.cell, _same(found.cell)
        if same not in self._loaded:
            self._loaded[same] = load_recorded(found.home.path / SCENARIOS / cell.id)
        return self._loaded[same].model_copy(update={"seed": cell.seed})


def _same(cell: SweepCell) -> str:
    """Equal for cells that differ by their seed or number alone."""
    return json.dumps([cell.file, {key: value for key, value in cell.settings.items() if key != "seed"}])


def _outcome(one: CellTry) -> RunOutcome:
    document = one.document
    run = document.get("run")
    try:
        verdict = Verdict.from_dict(run) if run else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(one.folder / CELL_FILE, f"run: is malformed ({error!r})") from None
    return RunOutcome(
        one.exit_code,
        float(document["seconds"]),
        verdict,
        one.folder,
        str(run.get("headline", "")) if run else "",
        document.get("base_rtt_ns"),
        tuple(document.get("warnings") or ()),
        "" if run else str(document.get("reason", "")),
    )
