"""One run for scripts: plain attributes, and a pandas frame per table, made on first access."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrc_testbed.testbed.checks.figure import Observed, ask
from mrc_testbed.testbed.checks.healing import RECOVERY_FILE, recovery_document
from mrc_testbed.testbed.checks.judge import VERDICT_FILE, read_verdict
from mrc_testbed.testbed.checks.record import RunRecord, load_outline, load_record
from mrc_testbed.testbed.checks.steps import job_steps, last_to_end
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.report.frames import documents, schema
from mrc_testbed.testbed.report.frames.read import counted_frame, csv_frame, event_lines, rows_frame
from mrc_testbed.testbed.rundir import lines, tables
from mrc_testbed.testbed.rundir.files import read_json, read_lines
from mrc_testbed.testbed.rundir.results import run_folder
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

_OWN_FRAMES = ("snapshot", "step")
"""Events that have frames of their own, because they are many and alike."""


def load_run(run: str | Path) -> Run:
    """Load a run by its folder, its bare name in `results`, or `latest` (relative to the current folder).

    Works for any run, also one that was killed or is still running. Raises UsageError if there is none, ScenarioError
    or RecordError for malformed files; attributes that read a file raise RecordError, too.
    """
    return Run(run_folder(Path(run)))


class Run:
    """The data of a run. Frames are cached: copy one before you change it. Columns and units: docs/results.md.

    Columns `..._s` are seconds; moments count from the workload's start. A frame without its file has no rows but all
    its columns.
    """

    def __init__(self, folder: Path) -> None:
        """Reads scenario, plan, environment and history, and no file that grows with the length of the run."""
        self.folder = folder
        self._outline = load_outline(folder)

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {self.verdict or 'no verdict'}>"

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.folder.name

    @property
    def scenario(self) -> Scenario:
        """The scenario as it was run."""
        return self._outline.scenario

    @property
    def plan(self) -> Plan:
        """The plan of its fabric."""
        return self._outline.plan

    @property
    def world(self) -> str:
        """`kernel`, or `virtual` for virtual time."""
        return self.scenario.world.value

    @property
    def seed(self) -> int:
        """The seed it was run with."""
        return self.scenario.seed

    @property
    def environment(self) -> Mapping[str, Any]:
        """environment.json; empty if it is missing."""
        return self._outline.environment

    @property
    def start_ns(self) -> int | None:
        """Start of the workload on the run's clock: 0 of all `..._s`. None: it did not begin."""
        return self._outline.start_ns

    @property
    def end_ns(self) -> int:
        """End of the workload, or of the history if it did not end."""
        return self._outline.end_ns

    @property
    def base_rtt_ns(self) -> int | None:
        """The smallest RTT measured in warm-up; None: not measured."""
        return self._outline.base_rtt_ns

    @property
    def interrupted(self) -> str:
        """Why the run ended early; empty if it did not, or if nothing recorded it."""
        return self._outline.interrupted

    @property
    def verdict(self) -> str | None:
        """`pass`, `fail` or `inconclusive`; None without a verdict."""
        return None if self.judged is None else self.judged.status.value

    @property
    def reason(self) -> str:
        """Why it did not pass, in one line; empty without a verdict."""
        return "" if self.judged is None else self.judged.reason

    def figure(self, text: str, unit: str | None = None) -> Observed:
        """A figure in the words of expectations, as `step_time.p100 during cut`, in `unit` (see docs/scenario.md).

        Raises ValueError for an unreadable text or unit, ScenarioError for names that the scenario does not have.
        """
        return ask(self.record, text, unit)

    @cached_property
    def judged(self) -> Verdict | None:
        """verdict.json. Raises RecordError if it is malformed."""
        return read_verdict(self.folder) if (self.folder / VERDICT_FILE).exists() else None

    @cached_property
    def record(self) -> RunRecord:
        """The whole record as Python objects, as the checks read it. Slow and large for a long run."""
        return load_record(self.folder)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Interface counters of every port, five times a second."""
        return csv_frame(self.folder, tables.SAMPLES, self.start_ns)

    @cached_property
    def ports(self) -> pd.DataFrame:
        """Marks, trims, drops, losses and corruption at ports, a row per change."""
        return csv_frame(self.folder, tables.PORTS, self.start_ns)

    @cached_property
    def completions(self) -> pd.DataFrame:
        """A row per rank and step, warm-up included."""
        return csv_frame(self.folder, tables.COMPLETIONS, self.start_ns)

    @cached_property
    def waits(self) -> pd.DataFrame:
        """How long ranks waited, by step and peer."""
        return csv_frame(self.folder, tables.WAITS, self.start_ns)

    @cached_property
    def flows(self) -> pd.DataFrame:
        """What each QP of a flow delivered, in stretches of 100 ms."""
        return csv_frame(self.folder, tables.FLOWS, self.start_ns)

    @cached_property
    def messages(self) -> pd.DataFrame:
        """Acknowledged messages of flows."""
        return csv_frame(self.folder, tables.MESSAGES, self.start_ns)

    @cached_property
    def flow_times(self) -> pd.DataFrame:
        """Flows of traces that ended, with their slowdown."""
        return csv_frame(self.folder, tables.FLOW_TIMES, self.start_ns)

    @cached_property
    def routes(self) -> pd.DataFrame:
        """Next hops that BGP has given the T0s, at each change."""
        return csv_frame(self.folder, tables.ROUTES, self.start_ns)

    @cached_property
    def programs(self) -> pd.DataFrame:
        """How the programs of the user ended."""
        return csv_frame(self.folder, tables.PROGRAMS, self.start_ns)

    @cached_property
    def printed(self) -> pd.DataFrame:
        """The numbers that they printed."""
        return csv_frame(self.folder, tables.PRINTED, self.start_ns)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Events of endpoints, except snapshots and steps."""
        return self._rows(lines.EVENTS, event_lines(self.folder / lines.EVENTS.file, but_not=_OWN_FRAMES))

    @cached_property
    def snapshots(self) -> pd.DataFrame:
        """Counters of every host, five times a second: one column per counter."""
        found = event_lines(self.folder / lines.SNAPSHOTS.file, "snapshot")
        return self._counted(lines.SNAPSHOTS, documents.snapshot_rows(found))

    @cached_property
    def history(self) -> pd.DataFrame:
        """Actions with their times; several links or hosts are joined by a comma and a space."""
        return self._rows(lines.HISTORY, documents.history_rows(read_lines(self.folder / lines.HISTORY.file)))

    @cached_property
    def map(self) -> pd.DataFrame:
        """What the mapper said and decided; several names are joined by a comma and a space."""
        return self._rows(lines.MAP, documents.history_rows(read_lines(self.folder / lines.MAP.file)))

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Job steps as the metric `step_time` defines them: finished by every rank of the job, without warm-up."""
        done = self.completions
        columns = list(tables.COMPLETIONS.names)
        completions = tuple(tables.Completion._make(row) for row in done[columns].itertuples(index=False))
        record = RunRecord(self.folder, self.scenario, completions=completions)
        rows = (
            {
                **{"step": one.index, "begin_ns": one.begin_ns, "end_ns": one.end_ns, "duration_ns": one.duration_ns},
                **{"bytes": one.bytes, "bytes_wrong": one.bytes_wrong},
                **{"last_host": last_to_end(record, one).host, "job": one.job},
            }
            for one in job_steps(record)
        )
        return self._rows(schema.STEPS, rows)

    @cached_property
    def recovery(self) -> pd.DataFrame:
        """Recovery from each cycle of each fault. Without recovery.json it is computed from the other files."""
        document = read_json(self.folder / RECOVERY_FILE)
        if document is None:
            document = recovery_document(self.record)
        return self._rows(schema.RECOVERY, documents.recovery_rows(document))

    @cached_property
    def counters(self) -> pd.DataFrame:
        """Final counters of each endpoint: one column per counter."""
        return self._counted(schema.COUNTERS, documents.counter_rows(self._counts))

    @cached_property
    def port_counters(self) -> pd.DataFrame:
        """Final counts of each port; no rows without the port program."""
        return self._rows(schema.PORT_COUNTERS, documents.port_rows(self._counts, "ports"))

    @cached_property
    def queues(self) -> pd.DataFrame:
        """Packets sent and dropped by the shaper of each port."""
        return self._rows(schema.QUEUES, documents.port_rows(self._counts, "queues"))

    @cached_property
    def qps(self) -> pd.DataFrame:
        """Data packets sent and lost by each end of each QP."""
        return self._rows(schema.QPS, documents.qp_rows(self._counts))

    @cached_property
    def paths(self) -> pd.DataFrame:
        """Data packets by sender, peer and path."""
        return self._rows(schema.PATHS, documents.path_rows(self._counts))

    @cached_property
    def ends(self) -> pd.DataFrame:
        """How jobs, flows and programs ended, and QPs that failed."""
        return self._rows(schema.ENDS, () if self.judged is None else self.judged.as_dict()["ends"])

    @cached_property
    def checks(self) -> pd.DataFrame:
        """The checks of the verdict."""
        return self._rows(schema.CHECKS, () if self.judged is None else self.judged.as_dict()["checks"])

    @cached_property
    def fidelity(self) -> pd.DataFrame:
        """How well the machine kept time, as in the verdict."""
        return self._rows(schema.FIDELITY, () if self.judged is None else self.judged.as_dict()["fidelity"]["figures"])

    @cached_property
    def _counts(self) -> Mapping[str, Any]:
        return read_json(self.folder / schema.COUNTERS.file) or {}

    def _rows(self, table: tables.Table, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        return rows_frame(table, rows, self.start_ns, self.folder / table.file)

    def _counted(self, table: tables.Table, rows: Iterable[tuple[Sequence[Any], Mapping[str, int]]]) -> pd.DataFrame:
        return counted_frame(table, rows, self.start_ns, self.folder / table.file)
