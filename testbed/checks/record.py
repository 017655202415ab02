"""The run folder (docs/results.md) as typed, frozen data. A killed run's folder reads as far as it was written."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from testbed.checks.conservation import Books
from testbed.checks.counter_row import CounterRow
from testbed.checks.counts import QpCount, read_counts
from testbed.rundir.files import RecordError, read_json, read_lines, refuse_strange_files
from testbed.rundir.tables import (
    COMPLETIONS,
    FLOWS,
    MESSAGES,
    PORTS,
    WAITS,
    AcknowledgedMessage,
    Completion,
    PortSample,
    Received,
    Wait,
    read_rows,
)
from testbed.scenario import Occurrence, Scenario, load_recorded, read_occurrences
from topos.names import host_name
from topos.plan import Plan

T = TypeVar("T")

_EXPECTED = ("environment.json", "history.jsonl", "events.jsonl", "completions.csv", "counters.json", "fidelity.json")
"""Files that every complete run has."""
GOOD = "GOOD"
SKIP = "SKIP"
ASSUMED_BAD = "ASSUMED_BAD"


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


@dataclass(frozen=True, slots=True)
class EvChange:
    """One path of a sender changed state.

    `first_lost_tx_ns` 0: no lost packet is known; `last_tx_ns` 0: no data packet was sent on it.
    """

    t_ns: int
    host: str
    peer: str
    plane: int
    uplink: int
    old: str
    new: str
    first_lost_tx_ns: int
    last_tx_ns: int = 0

    @property
    def retired(self) -> bool:
        """True if the path left use."""
        return self.old in (GOOD, SKIP) and self.new == ASSUMED_BAD

    @property
    def restored(self) -> bool:
        """True if the path returned to use."""
        return self.old == ASSUMED_BAD and self.new in (GOOD, SKIP)


@dataclass(frozen=True, slots=True)
class Notice:
    """An event with a reason: a QP error (`peer`: its other end), or the end of a daemon."""

    t_ns: int
    host: str
    reason: str
    peer: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters of a host at one time. `lost`: packets lost by QP, without zeros; None: not counted.
    `stalled`: since when, by QP, for those that deliver nothing; None: not watched."""

    t_ns: int
    host: str
    counters: Mapping[str, int]
    lost: Mapping[str, int] | None = None
    stalled: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a QP of `host` to `peer` had work outstanding and delivered nothing. `end_ns` None: until the end
    of the run, as far as was reported."""

    host: str
    peer: str
    qp: str
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class PortChange:
    """A NIC port changed state, as a host saw it: its own (`peer` empty), or a peer's as reported."""

    t_ns: int
    host: str
    peer: str
    plane: int
    state: str


@dataclass(frozen=True)
class RunRecord:
    """All files of a run. `occurrences`: of all its faults, as planned. `missing` names absent files; their parts are
    empty."""

    folder: Path
    scenario: Scenario
    occurrences: tuple[Occurrence, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[HistoryLine, ...] = ()
    ev_changes: tuple[EvChange, ...] = ()
    qp_errors: tuple[Notice, ...] = ()
    fatals: tuple[Notice, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    stalls: tuple[Stall, ...] = ()
    port_changes: tuple[PortChange, ...] = ()
    ports: tuple[PortSample, ...] = ()
    completions: tuple[Completion, ...] = ()
    waits: tuple[Wait, ...] = ()
    received: tuple[Received, ...] = ()
    messages: tuple[AcknowledgedMessage, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    qps: Mapping[str, Mapping[str, QpCount]] = field(default_factory=dict)
    queue_drops: int | None = None
    books: Books | None = None
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

    @cached_property
    def cut_links(self) -> frozenset[str]:
        """Links on which packets may have vanished uncounted, because a fault took them down."""
        kinds = {kind for kind, model in self.scenario.fault_kinds.items() if model.effect.loses_uncounted}
        lines = (line for line in self.history if line.op == "inject" and line.kind in kinds)
        return frozenset(name for line in lines for name in line.links)

    @cached_property
    def start_ns(self) -> int | None:
        """Start of the workload."""
        begins = [line.t_ns for line in self.history if line.op == "workload"]
        begun = [done.begin_ns for done in self.completions] + [row.begin_ns for row in self.received]
        return begins[0] if begins else min(begun, default=None)

    @cached_property
    def death(self) -> Notice | None:
        """The QP error that ended the job; None if no QP failed, or the job was done nevertheless."""
        return None if self.workload_done else min(self.qp_errors, key=lambda seen: seen.t_ns, default=None)

    @cached_property
    def end_ns(self) -> int:
        """End of the workload: when it was done, when it died, or its last sign of life."""
        if self.death:
            return max(self.death.t_ns, self.start_ns or 0)
        ends = [line.t_ns for line in self.history if line.op == "workload" and line.type == "ok"]
        ends += [line.t_ns for line in self.history if line.phase == "run" and line.type == "fail"]
        # The interruption of a killed run is recorded when it is found, maybe days later.
        done = [line.t_ns for line in self.history if line.op != "interrupt"]
        heard = [shot.t_ns for shot in self.snapshots[-1:]] + done[-1:]
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


def load_outline(folder: str | Path, scenario: Scenario | None = None) -> RunRecord:
    """A run's scenario and history without measurements: fast for any length of run.

    `scenario`: the one that was run, with its schedule, where it is at hand; else both are read. Raises ScenarioError
    or RecordError for malformed files.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RecordError(folder, "no such run folder")
    refuse_strange_files(folder)
    occurrences = scenario.occurrences if scenario else None
    scenario = scenario or load_recorded(folder)
    return RunRecord(
        folder,
        scenario,
        _occurrences(folder / "plan.json", scenario) if occurrences is None else occurrences,
        environment=read_json(folder / "environment.json") or {},
        history=_each(
            folder / "history.jsonl",
            read_lines(folder / "history.jsonl"),
            lambda row: _history_line(row, scenario.fault_kinds),
        ),
        fidelity=read_json(folder / "fidelity.json"),
        missing=tuple(name for name in _EXPECTED if not (folder / name).exists()),
    )


def load_record(folder: str | Path, scenario: Scenario | None = None) -> RunRecord:
    """Read a run folder. `scenario`: as for `load_outline`. Raises ScenarioError or RecordError for malformed
    files."""
    outline = load_outline(folder, scenario)
    folder = outline.folder
    events = _events(folder / "events.jsonl")
    counts = read_counts(folder / "counters.json")
    return replace(
        outline,
        ev_changes=tuple(events["ev_state"]),
        qp_errors=tuple(events["qp_error"]),
        fatals=tuple(events["fatal"]),
        snapshots=tuple(events["snapshot"]),
        completions=tuple(read_rows(folder, COMPLETIONS)),
        stalls=tuple(events["stall"]),
        port_changes=tuple(events["port_state"]),
        ports=tuple(read_rows(folder, PORTS)),
        waits=tuple(read_rows(folder, WAITS)),
        received=tuple(read_rows(folder, FLOWS)),
        messages=tuple(read_rows(folder, MESSAGES)),
        counters=counts.hosts,
        qps=counts.qps,
        queue_drops=counts.queue_drops,
        books=counts.books_of(outline.scenario.transport),
    )


def _occurrences(path: Path, scenario: Scenario) -> tuple[Occurrence, ...]:
    """The schedule that was executed; the planned one for a run that ended before it was written."""
    document = read_json(path)
    if document is None:
        return scenario.occurrences
    try:
        return read_occurrences(document.get("faults"), scenario.plan(), scenario.fault_kinds)
    except ValueError as error:
        raise RecordError(path, f"its schedule cannot be read: {error}") from None


def _events(path: Path) -> dict[str, list[Any]]:
    """Parsed events by name, read line by line, because those of an hour do not fit into a small machine."""
    found: dict[str, list[Any]] = {name: [] for name in _EVENTS}
    for row in read_lines(path):
        name = row.get("event")
        if name in found:
            found[name].append(_made(path, row, _EVENTS[name]))
    return found


def _each(path: Path, rows: Iterator[Any], make: Callable[[Any], T]) -> tuple[T, ...]:
    return tuple(_made(path, row, make) for row in rows)


def _made(path: Path, row: Any, make: Callable[[Any], T]) -> T:
    try:
        if not isinstance(row.get("host", ""), str):
            raise TypeError("'host'")
        return make(row)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(path, f"a line lacks or misspells {error}: {row}") from None


def _history_line(row: Mapping[str, Any], kinds: Container[str]) -> HistoryLine:
    if row.get("kind") and row["kind"] not in kinds:
        raise KeyError(row["kind"])
    text = {key: str(row.get(key) or "") for key in ("phase", "fault", "kind", "target", "error")}
    number, links = int(row.get("cycle") or 0), tuple(row.get("links") or ())
    ends = {"sender": str(row.get("from") or ""), "peer": str(row.get("to") or "")}
    return HistoryLine(
        int(row["t_ns"]),
        row["op"],
        row["type"],
        number=number,
        links=links,
        late=row.get("late") is True,
        **ends,
        **text,
    )


def _ev_change(row: Mapping[str, Any]) -> EvChange:
    peer = row["peer"]
    peer = host_name(peer) if isinstance(peer, int) else str(peer)
    where = int(row["plane"]), int(row["uplink"])
    sent = (int(row.get(key) or 0) for key in ("first_lost_tx_ns", "last_tx_ns"))
    return EvChange(int(row["t_ns"]), row["host"], peer, *where, row["from"], row["to"], *sent)


def _notice(row: Mapping[str, Any]) -> Notice:
    reason = str(row.get("reason") or "no reason given")
    return Notice(int(row["t_ns"]), row["host"], reason, str(row.get("peer") or ""))


def _snapshot(row: Mapping[str, Any]) -> Snapshot:
    counters = CounterRow(row["counters"])
    return Snapshot(int(row["t_ns"]), row["host"], counters, _by_qp(row, "lost"), _by_qp(row, "stalled"))


def _by_qp(row: Mapping[str, Any], key: str) -> Mapping[str, int] | None:
    """Whole numbers by QP, None if the line has none. Raises TypeError for anything else."""
    value = row.get(key)
    if value is None or (isinstance(value, dict) and all(isinstance(number, int) for number in value.values())):
        return value
    raise TypeError(repr(key))


def _stall(row: Mapping[str, Any]) -> Stall:
    end = row.get("end_ns")
    ended = None if end is None else int(end)
    return Stall(row["host"], str(row["peer"]), str(row["qp"]), int(row["begin_ns"]), ended)


def _port_change(row: Mapping[str, Any]) -> PortChange:
    return PortChange(int(row["t_ns"]), row["host"], str(row["peer"] or ""), int(row["plane"]), row["state"])


_EVENTS: Mapping[str, Callable[[Any], Any]] = {
    "ev_state": _ev_change,
    "qp_error": _notice,
    "fatal": _notice,
    "snapshot": _snapshot,
    "stall": _stall,
    "port_state": _port_change,
}
