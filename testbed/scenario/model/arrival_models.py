"""Models of the entries of `workload` that are flows which arrive over time, many between the same two hosts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, PrivateAttr, WithJsonSchema, model_validator

from mrc_testbed.testbed.scenario.model.flow_models import Ends, FlowEntry, numbers_of
from mrc_testbed.testbed.scenario.text.beside import DataFile, DataFileMistake, data_file
from mrc_testbed.testbed.scenario.text.fields import MAX_QPS, NAME_PATTERN, FaultName, Size, Whole, given, refuse
from mrc_testbed.testbed.workloads.arrivals import Arrival
from mrc_testbed.testbed.workloads.flows import MAX_DEPTH, Flow
from mrc_testbed.testbed.workloads.trace import TraceMistake, TraceRow, read_trace
from mrc_testbed.topos.shape import Shape

USUAL_QPS = 4
_NS = 1e9


def _file(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refuse("must be a file beside the scenario, such as flows.csv")
    return value


def _bins(value: object) -> tuple[tuple[str, int], ...]:
    """Names with the largest size in each, the smallest first."""
    if not isinstance(value, dict) or not value:
        raise refuse("must be a mapping of names to sizes, such as {small: 10KiB, medium: 1MiB}")
    found: list[tuple[str, int]] = []
    for name, size in value.items():
        bound = _checked(Size, size, name)
        if found and bound <= found[-1][1]:
            raise refuse(f"{size} is not more than the bound of {found[-1][0]!r}; write them by size", below=name)
        found.append((_checked(FaultName, name, name), bound))
    return tuple(found)


def _checked(kind: Any, value: object, key: str) -> Any:
    """What a type of the language makes of a value. Raises its own error, at the key."""
    check: Any = next(each for each in kind.__metadata__ if isinstance(each, PlainValidator)).func
    try:
        return check(value)
    except ValueError as error:
        raise refuse(str(error), below=key) from None


def _stretch(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-9 <= value <= 1e9:
        raise refuse("must be a number from 1e-9 to 1e9, such as 4000")
    return float(value)


File = Annotated[str, PlainValidator(_file), WithJsonSchema({"type": "string"})]
"""A data file beside the scenario."""
Stretch = Annotated[
    float, PlainValidator(_stretch), WithJsonSchema({"type": "number", "minimum": 1e-9, "maximum": 1e9})
]
"""What the times of a data file are multiplied by."""
_SIZES = {"type": "object", "propertyNames": {"pattern": f"^{NAME_PATTERN}$"}, "minProperties": 1}
Bins = Annotated[tuple[tuple[str, int], ...], PlainValidator(_bins), WithJsonSchema(_SIZES)]


class Arriving(FlowEntry):
    """Common keys of flows that arrive over time: each takes that QP of its pair on which the fewest bytes wait."""

    qps: Whole = Field(
        default=USUAL_QPS, ge=1, le=MAX_QPS, description="queue pairs of each pair of hosts", examples=[USUAL_QPS]
    )
    depth: Annotated[Whole | None, given("8")] = Field(
        default=None, ge=1, le=MAX_DEPTH, description="messages queued on a QP; left out, enough to fill the line"
    )
    bins: Bins = Field(
        default=(),
        description="names for flows of up to these sizes, for expectations",
        examples=["{small: 10KiB, medium: 1MiB}"],
        json_schema_extra={"default": {}},
    )

    @abstractmethod
    def by_pair(self, shape: Shape, seed: int) -> Mapping[tuple[str, str], tuple[Arrival, ...]]:
        """The flows from each host to each other, by begin."""

    def names(self) -> Iterable[str]:
        """Its own, and the bins."""
        return (self.group, *(name for name, _ in self.bins))

    def flow(self, ends: Ends, shape: Shape, seed: int) -> Flow:
        """All flows between two existing hosts."""
        arrivals = self.by_pair(shape, seed)[ends.src, ends.dst]
        src, dst = numbers_of(ends)
        groups = dict.fromkeys((self.group, *(group for one in arrivals for group in one.groups)))
        total = sum(one.size for one in arrivals)
        times = arrivals[0].start_ns, None, total
        common = self.message_bytes, self.qps, *times, self.depth, tuple(groups)
        return Flow(src, dst, *common, greedy=False, arrivals=arrivals)

    def groups_of(self, size: int) -> tuple[str, ...]:
        """The bin of a flow; none for one that is larger than all."""
        return next(((name,) for name, most in self.bins if size <= most), ())


class TraceEntry(Arriving):
    """Flows of a file."""

    kind: ClassVar[str] = "trace"

    file: File = Field(description="CSV with the columns start_s,src,dst,bytes[,name]", examples=["flows.csv"])
    stretch: Stretch = Field(default=1.0, description="times of the file are multiplied by it", examples=[4000])
    _rows: tuple[TraceRow, ...] = PrivateAttr(default=())
    _data: DataFile | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read(self) -> TraceEntry:
        try:
            self._data = data_file(self.file)
            self._rows = read_trace(self._data.text())
            self._check_names()
        except DataFileMistake as mistake:
            raise refuse(str(mistake), below="file") from None
        except TraceMistake as mistake:
            raise refuse(f"{self.file}:{mistake.line}: {mistake}", below="file") from None
        return self

    def _check_names(self) -> None:
        lines = {row.name: row.line for row in self._rows if row.name}
        for name, line in lines.items():
            if name in super().names():
                raise TraceMistake(line, f"{name!r} is the name of a bin, or of the entry; choose another")
            try:
                _checked(FaultName, name, "")
            except ValueError as error:
                raise TraceMistake(line, str(error)) from None

    @property
    def data(self) -> DataFile:
        """Its file as it was read. Raises ValueError for an entry that was not loaded."""
        if self._data is None:
            raise ValueError("only the trace of a loaded scenario has its file")
        return self._data

    def names(self) -> Iterable[str]:
        """Its own, the bins, and those of the file."""
        return dict.fromkeys((*super().names(), *(row.name for row in self._rows if row.name)))

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """Each pair once, in the order of their first flows."""
        seen = set()
        for row in sorted(self._rows, key=lambda row: row.line):
            if (row.src, row.dst) not in seen:
                seen.add((row.src, row.dst))
                yield Ends(row.src, row.dst, self.group, ("file",), ("file",), f"{self.file}:{row.line}: ")

    def by_pair(self, shape: Shape, seed: int) -> Mapping[tuple[str, str], tuple[Arrival, ...]]:
        found: dict[tuple[str, str], list[Arrival]] = {}
        for row in self._rows:
            start_ns = self.start_ns + round(row.start_s * self.stretch * _NS)
            groups = (*((row.name,) if row.name else ()), *self.groups_of(row.bytes))
            found.setdefault((row.src, row.dst), []).append(Arrival(start_ns, row.bytes, groups, row.name))
        return {pair: tuple(arrivals) for pair, arrivals in found.items()}


ARRIVAL_KINDS: dict[str, type[Arriving]] = {TraceEntry.kind: TraceEntry}
"""The kinds by their key."""
