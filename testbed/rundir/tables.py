"""The tables of a run folder: the only place in the code that lists the columns of each CSV file.

A row is a named tuple whose fields are the columns. The recorder writes such rows, `read_rows` reads them back, and the
pandas frames have the same columns. docs/results.md defines the columns; a test compares it with this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

DTYPES = {
    "text": "str",
    "int": "int64",
    "int?": "Int64",
    "number": "float64",
    "flag": "bool",
    "flag?": "boolean",
}
"""Documented type: pandas dtype. A question mark: may be missing (NA). A number may be NaN, a text empty."""
CLOCK = "clock ns"
"""A moment, in ns of CLOCK_MONOTONIC."""
NS = "ns"
"""A length of time."""
_TYPES: Mapping[type, str] = {bool: "flag", int: "int", float: "number", str: "text"}
_MAY_BE_MISSING = ("int", "flag")
"""Types that have another for it; a text is empty then, and a number is none."""
ClockNs = Annotated[int, CLOCK]
DurationNs = Annotated[int, NS]
Bytes = Annotated[int, "bytes"]
Packets = Annotated[int, "packets"]
RowT = TypeVar("RowT", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file, and so of its frame."""

    name: str
    type: str
    unit: str = ""

    @property
    def in_seconds(self) -> str:
        """Name of the column with the same value in seconds; empty if there is none."""
        return f"{self.name.removesuffix('_ns')}_s" if self.unit in (CLOCK, NS) else ""


@dataclass(frozen=True, slots=True)
class Table:
    """A frame: its attribute in Run, its file, and its columns. `open_ended`: followed by one int column per
    counter."""

    name: str
    file: str
    columns: tuple[Column, ...]
    open_ended: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def dtypes(self) -> dict[str, str]:
        """The columns of the frame in order, with their pandas dtypes: seconds come before their nanoseconds."""
        found = {}
        for column in self.columns:
            if column.in_seconds:
                found[column.in_seconds] = DTYPES["number"]
            found[column.name] = DTYPES[column.type]
        return found


@dataclass(frozen=True)
class CsvTable(Table, Generic[RowT]):
    """A CSV file with a header. `row`: makes a row of its values."""

    row: Callable[..., RowT] = field(kw_only=True)


def _table(name: str, row: Callable[..., RowT]) -> CsvTable[RowT]:
    """Looks the table up by file name."""
    return CsvTable(name, f"{name}.csv", columns_of(row), row=row)


def columns_of(row: Any) -> tuple[Column, ...]:
    """The columns that the annotations of a class say."""
    return tuple(_column(*hint) for hint in get_type_hints(row, include_extras=True).items())


def _column(name: str, hint: Any) -> Column:
    kind, unit = get_args(hint) if get_origin(hint) is Annotated else (hint, "")
    first, *others = get_args(kind) or (kind,)
    named = next(word for known, word in _TYPES.items() if issubclass(first, known))
    missing = type(None) in others and named in _MAY_BE_MISSING
    return Column(name, f"{named}?" if missing else named, unit)


class Sample(NamedTuple):
    """Interface counters of a port at one time, cumulative since the port was created."""

    t_ns: ClockNs
    node: str
    port: str
    rx_bytes: Bytes
    rx_packets: Packets
    rx_drops: Packets
    tx_bytes: Bytes
    tx_packets: Packets
    tx_drops: Packets


class PortSample(NamedTuple):
    """Cumulative counts of the port program at one port, written when one of them has changed.

    `marked`, `trimmed`, `dropped`: data packets leaving a switch port; `lost`, `corrupted`: packets that rules dropped
    or changed on arrival.
    """

    t_ns: ClockNs
    node: str
    port: str
    marked: Packets
    trimmed: Packets
    dropped: Packets
    lost: Packets
    corrupted: Packets


class Completion(NamedTuple):
    """One rank finished one step."""

    host: str
    step: int
    begin_ns: ClockNs
    end_ns: ClockNs
    bytes: Bytes
    bytes_wrong: Bytes


class Wait(NamedTuple):
    """How long a rank waited in a step for data from one peer."""

    host: str
    step: int
    peer: str
    wait_ns: DurationNs


PLACED_BYTES = "placed"
"""`flow_bytes` in environment.json: what `bytes` in flows.csv counts."""


class Received(NamedTuple):
    """What one QP of a flow delivered to `host` in an interval: bytes placed in memory, and whole messages, of whose
    bytes `bytes_wrong` differ; `last`: 1 in the final interval, else 0."""

    host: str
    flow: str
    qp: int
    begin_ns: ClockNs
    end_ns: ClockNs
    bytes: Bytes
    messages: int
    bytes_wrong: Bytes
    last: int


class AcknowledgedMessage(NamedTuple):
    """A message of a flow whose acknowledgement the sender `host` has received: time and duration since posting."""

    host: str
    flow: str
    qp: int
    end_ns: ClockNs
    duration_ns: DurationNs

    @property
    def begin_ns(self) -> int:
        """When it was posted."""
        return self.end_ns - self.duration_ns


class FlowTime(NamedTuple):
    """A flow of a trace that ended. `number`: of the flows from `host` to that peer, from 0 on; `name`: its own, empty
    for none; `alone_ns`: how long it would have taken alone in the idle fabric; `slowdown`: the one over the other."""

    host: str
    flow: str
    number: int
    name: str
    bytes: Bytes
    begin_ns: ClockNs
    end_ns: ClockNs
    duration_ns: DurationNs
    alone_ns: DurationNs
    slowdown: float


class RouteSample(NamedTuple):
    """BGP has given a T0 another number of next hops than before; `of`: when nothing is broken."""

    t_ns: ClockNs
    node: str
    next_hops: int
    of: int


KILLED, STOPPED = 1, 2
"""Why the run ended a program: it took too long or too much; or the run, its job or another program of it had ended."""


class ProgramEnd(NamedTuple):
    """The end of a program of the user. `status`: its exit status, or -N if signal N ended it; `killed`: KILLED or
    STOPPED if the run did that, else 0; `cpu_ns`: CPU time that it took, with its children."""

    host: str
    job: str
    begin_ns: ClockNs
    end_ns: ClockNs
    status: int
    killed: int
    cpu_ns: DurationNs


class PrintedValue(NamedTuple):
    """A number that a program printed: `figure` is the name of the group in its pattern."""

    host: str
    figure: str
    t_ns: ClockNs
    value: float


SAMPLES = _table("samples", Sample)
PORTS = _table("ports", PortSample)
COMPLETIONS = _table("completions", Completion)
WAITS = _table("waits", Wait)
FLOWS = _table("flows", Received)
MESSAGES = _table("messages", AcknowledgedMessage)
FLOW_TIMES = _table("flow_times", FlowTime)
ROUTES = _table("routes", RouteSample)
PROGRAMS = _table("programs", ProgramEnd)
PRINTED = _table("printed", PrintedValue)
CSV_TABLES: tuple[CsvTable[Any], ...] = (
    *(SAMPLES, PORTS, COMPLETIONS, WAITS, FLOWS, MESSAGES, FLOW_TIMES, ROUTES, PROGRAMS, PRINTED),
)
