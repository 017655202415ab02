"""A run folder as input of a comparison: its settings, its verdict and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.checks.judge import VERDICT_FILE, judge, read_verdict
from testbed.checks.record import RunRecord, load_record
from testbed.checks.result import Status, Verdict
from testbed.compare.figures import RunFigures, measured
from testbed.compare.settings import settings_of
from testbed.errors import TestbedError, UsageError
from testbed.report.facts import headline
from testbed.rundir.files import RecordError, read_json

SIDE = "runs"
"""The key in which sides differ, treated like a key of the scenario."""


@dataclass(frozen=True)
class ComparedRun:
    """One run.

    `settings`: by key; runs with equal settings are repeats. `believed`: the machine kept time and the run was
    complete, so its figures count. `paths`: those that carried data, as `h0->h4 p0/2`; empty without final counters.
    """

    record: RunRecord
    verdict: Verdict
    settings: Mapping[str, str]
    figures: RunFigures = field(repr=False)
    headline: str = ""
    paths: frozenset[str] = field(default=frozenset(), repr=False)

    def on_side(self, side: str) -> ComparedRun:
        """The same run, distinct from runs of other sides with equal settings."""
        return replace(self, settings={**self.settings, SIDE: side})

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.record.folder

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return self.record.scenario.name

    @property
    def seed(self) -> int:
        """The seed of its random choices."""
        return self.record.scenario.seed

    @property
    def believed(self) -> bool:
        """False for an inconclusive run."""
        return self.verdict.status is not Status.INCONCLUSIVE


def load_runs(folders: Sequence[Path]) -> list[ComparedRun]:
    """Read all runs. Raises UsageError for a duplicate, and with a line for each unreadable one."""
    places = [folder.resolve() for folder in folders]
    twice = next((folder for place, folder in enumerate(folders) if places[place] in places[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice}: duplicate run; a run cannot be compared with itself")
    runs, wrong = [], []
    for folder in folders:
        try:
            runs.append(load_run(folder))
        except TestbedError as error:
            wrong.append(str(error))
    if wrong:
        raise UsageError("\n".join(wrong))
    return runs


def load_run(folder: Path) -> ComparedRun:
    """Read one run; a run without a verdict is judged here. Raises TestbedError."""
    record = load_record(folder)
    asked, figures, paths = settings_of(record.scenario), measured(record), _paths(folder / "counters.json")
    return ComparedRun(record, _verdict(record), asked, figures, headline(record), paths)


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
