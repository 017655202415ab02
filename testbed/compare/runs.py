"""A run folder as input of a comparison: its settings, its verdict and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.judge import VERDICT_FILE, judge, read_verdict
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.figures import RunFigures, measured
from mrc_testbed.testbed.compare.settings import SEED, settings_of
from mrc_testbed.testbed.errors import TestbedError, UsageError
from mrc_testbed.testbed.report.facts import headline
from mrc_testbed.testbed.report.transport_words import transport_words
from mrc_testbed.testbed.rundir.files import RecordError, any_values, read_json
from mrc_testbed.testbed.rundir.lines import HISTORY
from mrc_testbed.testbed.scenario import Setting
from mrc_testbed.testbed.scenario.model.matrix import NAMED
from mrc_testbed.testbed.scenario.model.transports import WorldKind

SIDE = "runs"
"""The key in which sides differ, treated like a key of the scenario."""


@dataclass(frozen=True)
class ComparedRun:
    """One run.

    `spoken`: its transport in words. `settings`: by key; runs with equal settings are repeats. `believed`: the machine
    kept time and the run was complete, so its figures count. `paths`: those that carried data, as `h0->h4 p0/2`; empty
    without final counters. `machine`: the name of the one that ran it, where it is one of several; virtual time has
    none. `loaded`: its record, if that was read already. `axes`: those of its settings that a matrix varied.
    """

    folder: Path
    scenario: str
    seed: int
    world: WorldKind
    spoken: str
    verdict: Verdict
    settings: Mapping[str, str]
    figures: RunFigures = field(repr=False)
    environment: Mapping[str, Any] = field(default_factory=dict, repr=False)
    headline: str = ""
    paths: frozenset[str] = field(default=frozenset(), repr=False)
    machine: str = ""
    loaded: RunRecord | None = field(default=None, repr=False, compare=False)
    axes: tuple[str, ...] = ()

    def on_side(self, side: str) -> ComparedRun:
        """The same run, distinct from runs of other sides with equal settings."""
        return replace(self, settings={**self.settings, SIDE: side})

    def in_cell(self, cell: Iterable[Setting]) -> ComparedRun:
        """The same run, as the cell of a matrix. A seed is no axis: it is a draw of the same settings."""
        given = {one.key: one.shown for one in cell if one.key != SEED}
        axes = tuple(key for key in given if key not in NAMED)
        return replace(self, settings={**self.settings, **{key: given[key] for key in axes}}, axes=axes)

    @cached_property
    def record(self) -> RunRecord:
        """All that its folder holds. Raises TestbedError."""
        return self.loaded or load_record(self.folder)

    @property
    def has_record(self) -> bool:
        """False for a try of a sweep that brought back no more than a summary."""
        return self.loaded is not None or (self.folder / HISTORY.file).is_file()

    @property
    def folder_name(self) -> str:
        """Of its folder; of a try of a sweep, whose folder is a number, with its cell."""
        name = self.folder.name
        return f"{self.folder.parent.name}/{name}" if name.isdecimal() else name

    @property
    def believed(self) -> bool:
        """False for an inconclusive run, and for one of a late machine that failed by wrong data all the same."""
        return self.verdict.status is not Status.INCONCLUSIVE and self.verdict.fidelity.ok

    def as_dict(self) -> dict[str, Any]:
        """What `from_cell` reads, as JSON types: all but the record and the paths, which only the folder has."""
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "world": self.world.value,
            "spoken": self.spoken,
            "settings": dict(self.settings),
            "figures": dict(self.figures.values),
            "lacking": dict(self.figures.lacking),
            "environment": dict(self.environment),
            "headline": self.headline,
            **{key: value for key, value in self.verdict.as_dict().items() if key != "scenario"},
        }

    @staticmethod
    def from_cell(value: Mapping[str, Any], folder: Path, machine: str = "") -> ComparedRun:
        """A run of a sweep by what `as_dict` said of it. Its folder is read only when its record is asked for. Raises
        RecordError for malformed data."""
        try:
            world = WorldKind(value["world"])
            return ComparedRun(
                folder,
                value["scenario"],
                value["seed"],
                world,
                value["spoken"],
                Verdict.from_dict(value),
                value["settings"],
                RunFigures(value["figures"], value["lacking"]),
                value["environment"],
                value["headline"],
                machine=machine if world is WorldKind.KERNEL else "",
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordError(folder, f"its cell.json is malformed ({error!r})") from None


def load_runs(folders: Sequence[Path]) -> list[ComparedRun]:
    """Read all runs. Raises UsageError for a duplicate, and with a line for each unreadable one."""
    refuse_duplicates(folders)
    runs, wrong = [], []
    for folder in folders:
        try:
            runs.append(load_run(folder))
        except TestbedError as error:
            wrong.append(str(error))
    if wrong:
        raise UsageError("\n".join(wrong))
    return runs


def refuse_duplicates(folders: Sequence[Path]) -> None:
    """Raises UsageError if one run is there twice: it would count as a repeat of itself."""
    places = [folder.resolve() for folder in folders]
    twice = next((folder for place, folder in enumerate(folders) if places[place] in places[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice}: duplicate run; a run cannot be compared with itself")


def load_run(folder: Path) -> ComparedRun:
    """Read one run; a run without a verdict is judged here. Raises TestbedError."""
    with any_values(folder):
        record = load_record(folder)
        scenario = record.scenario
        return ComparedRun(
            folder,
            scenario.name,
            scenario.seed,
            scenario.world,
            transport_words(scenario),
            _verdict(record),
            settings_of(scenario),
            measured(record),
            record.environment,
            headline(record),
            _paths(folder / "counters.json"),
            loaded=record,
        )


def _paths(file: Path) -> frozenset[str]:
    """Raises RecordError for malformed paths."""
    hosts = (read_json(file) or {}).get("hosts", {})
    try:
        return frozenset(
            f"{host}->{peer} p{path}"
            for host, counted in hosts.items()
            for peer, paths in counted.get("paths", {}).items()
            for path, packets in paths.items()
            if packets
        )
    except AttributeError:
        raise RecordError(file, "its `paths` are not counts by peer and path") from None


def _verdict(record: RunRecord) -> Verdict:
    if not (record.folder / VERDICT_FILE).exists():
        return judge(record)
    try:
        return read_verdict(record.folder)
    except RecordError:  # written by another version: its source files are still there
        return judge(record)
