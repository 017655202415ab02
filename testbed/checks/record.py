"""The run folder (docs/results.md) as typed, frozen data. A killed run's folder reads as far as it was written."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.conservation import Books
from mrc_testbed.testbed.checks.counts import Counts, PausedPort, QpCount, read_counts
from mrc_testbed.testbed.checks.ends import End, How, ends_of
from mrc_testbed.testbed.checks.frame_balance import FrameBooks
from mrc_testbed.testbed.checks.map_lines import MapRecord, read_map
from mrc_testbed.testbed.evidence.events import (
    EvChange,
    Events,
    Notice,
    PathKey,
    PathRests,
    PortChange,
    QpPortMove,
    Stall,
    read_events,
)
from mrc_testbed.testbed.evidence.probes import ToldProbes
from mrc_testbed.testbed.evidence.snapshots import Snapshots
from mrc_testbed.testbed.rundir.files import RecordError, read_json, read_lines, refuse_strange_files
from mrc_testbed.testbed.rundir.packed import PackedRows, packed_rows, read_rows
from mrc_testbed.testbed.rundir.sizes import refuse_damaged
from mrc_testbed.testbed.rundir.tables import (
    COMPLETIONS,
    FLOW_TIMES,
    FLOWS,
    MESSAGES,
    PLACED_BYTES,
    PORTS,
    PRINTED,
    PROGRAMS,
    ROUTES,
    WAITS,
    AcknowledgedMessage,
    Completion,
    FlowTime,
    PortSample,
    PrintedValue,
    ProgramEnd,
    Received,
    RouteSample,
    Wait,
)
from mrc_testbed.testbed.scenario import Effect, Occurrence, Scenario, load_recorded, read_occurrences
from mrc_testbed.topos.plan import Plan

_EXPECTED = ("environment.json", "history.jsonl", "events.jsonl", "completions.csv", "counters.json", "fidelity.json")
"""Files that every complete run has."""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of history.jsonl. Fields that the line lacks are empty."""

    t_ns: int
    op: str
    type: str
    phase: str = ""
    fault: str = ""
    kind: str = ""
    target: str = ""
    number: int = 0
    links: tuple[str, ...] = ()
    sender: str = ""
    peer: str = ""
    error: str = ""
    late: bool = False
    machine: bool = False
    who: str = ""
    fix: str = ""


@dataclass(frozen=True)
class RunRecord:
    """All files of a run. `occurrences`: of all its faults, as planned. `rests`: by path the changes of EVs between
    GOOD and SKIP; `ev_changes`: all others. `missing` names absent files; their parts are empty."""

    folder: Path
    scenario: Scenario
    occurrences: tuple[Occurrence, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[HistoryLine, ...] = ()
    ev_changes: tuple[EvChange, ...] = ()
    qp_errors: tuple[Notice, ...] = ()
    fatals: tuple[Notice, ...] = ()
    program_failures: tuple[Notice, ...] = ()
    rests: Mapping[PathKey, PathRests] = field(default_factory=dict)
    snapshots: Snapshots = field(default_factory=lambda: Snapshots(Path()))
    stalls: tuple[Stall, ...] = ()
    port_changes: tuple[PortChange, ...] = ()
    port_moves: tuple[QpPortMove, ...] = ()
    probes: tuple[ToldProbes, ...] = ()
    ports: PackedRows[PortSample] = field(default_factory=lambda: PackedRows(PORTS))
    completions: Sequence[Completion] = ()
    waits: PackedRows[Wait] = field(default_factory=lambda: PackedRows(WAITS))
    received: PackedRows[Received] = field(default_factory=lambda: PackedRows(FLOWS))
    messages: PackedRows[AcknowledgedMessage] = field(default_factory=lambda: PackedRows(MESSAGES))
    flow_times: PackedRows[FlowTime] = field(default_factory=lambda: PackedRows(FLOW_TIMES))
    routes: tuple[RouteSample, ...] = ()
    mapped: MapRecord = field(default_factory=MapRecord)
    programs: tuple[ProgramEnd, ...] = ()
    printed: tuple[PrintedValue, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    qps: Mapping[str, Mapping[str, QpCount]] = field(default_factory=dict)
    paths: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    data_to: Mapping[str, int] | None = None
    queue_drops: int | None = None
    route_updates: int | None = None
    paused_ports: tuple[PausedPort, ...] = ()
    books: Books | None = None
    frame_books: FrameBooks | None = None
    fidelity: Mapping[str, Any] | None = None
    missing: tuple[str, ...] = ()
    derived: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Cache of derived values (see derived.py)."""

    @cached_property
    def plan(self) -> Plan:
        """The plan of the fabric, rebuilt: the same shape always gives the same plan."""
        return self.scenario.plan()

    @property
    def base_rtt_ns(self) -> int | None:
        """The unloaded RTT measured in warm-up, None if it was not measured."""
        value = self.environment.get("base_rtt_ns")
        return int(value) if value else None

    @property
    def probe_period_ns(self) -> int | None:
        """In which each probe of a host left once; None where hosts sent none, or they are not heard."""
        if self.scenario.mapper is None or not self.scenario.mapper.probes:
            return None
        about = self.environment.get("mapper")
        value = about.get("period_ns") if isinstance(about, dict) else None
        return value if isinstance(value, int) and value >= max(self.scenario.shape().rtt_ns, 1) else None

    @property
    def counts_placed_bytes(self) -> bool:
        """Whether receivers of flows counted bytes as they were placed in memory. Earlier runs counted whole
        messages."""
        return self.environment.get("flow_bytes") == PLACED_BYTES

    @cached_property
    def cut_links(self) -> frozenset[str]:
        """Links on which packets may have vanished uncounted, because a fault took them down."""
        return self._links_of_faults(lambda effect: effect.loses_uncounted)

    @cached_property
    def copied_links(self) -> frozenset[str]:
        """Links on which packets may have been doubled uncounted, because a fault with code of its own was there."""
        return self._links_of_faults(lambda effect: effect.copies_uncounted)

    def _links_of_faults(self, does: Callable[[Effect], bool]) -> frozenset[str]:
        kinds = {kind for kind, model in self.scenario.fault_kinds.items() if does(model.effect)}
        lines = (line for line in self.history if line.op == "inject" and line.kind in kinds)
        return frozenset(name for line in lines for name in line.links)

    @cached_property
    def start_ns(self) -> int | None:
        """Start of the workload."""
        for line in self.history:
            if line.op == "workload":
                return line.t_ns
        return min(chain((done.begin_ns for done in self.completions), self.received.column("begin_ns")), default=None)

    @cached_property
    def ends(self) -> Mapping[str, End]:
        """By name how each job and flow ended."""
        return ends_of(self)

    @cached_property
    def stopped(self) -> Mapping[str, End]:
        """Those of them that the testbed stopped before their end."""
        return {} if self.workload_done else {name: end for name, end in self.ends.items() if end.how is How.STOPPED}

    @cached_property
    def death(self) -> Notice | None:
        """The first QP error that ended a job or a flow; None if no QP failed, or all was done nevertheless."""
        if self.workload_done or not self.qp_errors:
            return None
        errors = (end.error for end in self.ends.values() if end.error)
        return min(errors, key=lambda seen: seen.t_ns, default=None)

    @cached_property
    def end_ns(self) -> int:
        """End of the workload: when it was done, when the last of its jobs and flows ended, or its last sign of
        life."""
        return max(self.start_ns or 0, *(end.t_ns for end in self.ends.values())) if self.death else self.last_ns

    @cached_property
    def last_ns(self) -> int:
        """When the run stopped to wait for the workload, or its last sign of life."""
        ends = [line.t_ns for line in self.history if line.op == "workload" and line.type == "ok"]
        ends += [line.t_ns for line in self.history if line.phase == "run" and line.type == "fail"]
        # The interruption of a killed run is recorded when it is found, maybe days later.
        done = [line.t_ns for line in self.history if line.op != "interrupt"]
        heard = done[-1:] if self.snapshots.last_ns is None else [self.snapshots.last_ns, *done[-1:]]
        return ends[0] if ends else max(heard, default=0)

    @property
    def workload_done(self) -> bool:
        """True if every host's program finished."""
        return any(line.op == "workload" and line.type == "ok" for line in self.history)

    @property
    def interrupted(self) -> str:
        """Why the run ended early, empty if it did not."""
        lines = [line for line in self.history if line.op == "interrupt"]
        return (lines[0].error or "interrupted") if lines else ""

    @property
    def ended_by_machine(self) -> bool:
        """The run was broken off because the machine was too slow for it."""
        return any(line.op == "interrupt" and line.late for line in self.history)

    @property
    def lacked_something(self) -> bool:
        """The run was broken off because the machine refused it a file, a process or memory."""
        return any(line.op == "interrupt" and line.machine for line in self.history)


def load_outline(folder: str | Path, scenario: Scenario | None = None) -> RunRecord:
    """A run's scenario and history without measurements: fast for any length of run.

    `scenario`: the one that was run, with its schedule, where it is at hand; else both are read. Raises ScenarioError
    or RecordError for malformed files.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RecordError(folder, "no such run folder")
    refuse_strange_files(folder)
    refuse_damaged(folder)
    occurrences = scenario.occurrences if scenario else None
    scenario = scenario or load_recorded(folder)
    return RunRecord(
        folder,
        scenario,
        _occurrences(folder / "plan.json", scenario) if occurrences is None else occurrences,
        environment=read_json(folder / "environment.json") or {},
        history=tuple(_history(folder / "history.jsonl", scenario.fault_kinds)),
        fidelity=read_json(folder / "fidelity.json"),
        missing=tuple(name for name in _EXPECTED if not (folder / name).exists()),
    )


def load_record(folder: str | Path, scenario: Scenario | None = None) -> RunRecord:
    """Read a run folder. `scenario`: as for `load_outline`. Raises ScenarioError or RecordError for malformed
    files."""
    outline = load_outline(folder, scenario)
    folder = outline.folder
    events, snapshots = read_events(folder / "events.jsonl")
    counts = read_counts(folder / "counters.json").of(outline.scenario.transport)
    return replace(
        outline,
        **_parts(events),
        **_parts(counts),
        snapshots=snapshots,
        completions=tuple(read_rows(folder, COMPLETIONS)),
        ports=packed_rows(folder, PORTS),
        waits=packed_rows(folder, WAITS),
        received=packed_rows(folder, FLOWS),
        messages=packed_rows(folder, MESSAGES),
        flow_times=packed_rows(folder, FLOW_TIMES),
        routes=tuple(read_rows(folder, ROUTES)),
        mapped=read_map(folder),
        programs=tuple(read_rows(folder, PROGRAMS)),
        printed=tuple(read_rows(folder, PRINTED)),
    )


def _parts(of: Events | Counts) -> dict[str, Any]:
    """Fields of events or counts, by the names that a record gives them."""
    found = {each.name: getattr(of, each.name) for each in fields(of)}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def _occurrences(path: Path, scenario: Scenario) -> tuple[Occurrence, ...]:
    """The schedule that was executed; the planned one for a run that ended before it was written."""
    document = read_json(path)
    if document is None:
        return scenario.occurrences
    try:
        return read_occurrences(document.get("faults"), scenario.plan(), scenario.fault_kinds)
    except ValueError as error:
        raise RecordError(path, f"its schedule cannot be read: {error}") from None


def _history(path: Path, kinds: Container[str]) -> Iterator[HistoryLine]:
    for row in read_lines(path):
        try:
            yield _history_line(row, kinds)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise RecordError(path, f"a line lacks or misspells {error}: {row}") from None


def _history_line(row: Mapping[str, Any], kinds: Container[str]) -> HistoryLine:
    if row.get("kind") and row["kind"] not in kinds:
        raise KeyError(row["kind"])
    text = {key: str(row.get(key) or "") for key in ("phase", "fault", "kind", "target", "error", "who", "fix")}
    number, links = int(row.get("cycle") or 0), tuple(row.get("links") or ())
    ends = {"sender": str(row.get("from") or ""), "peer": str(row.get("to") or "")}
    return HistoryLine(
        int(row["t_ns"]),
        row["op"],
        row["type"],
        number=number,
        links=links,
        late=row.get("late") is True,
        machine=row.get("machine") is True,
        **ends,
        **text,
    )
