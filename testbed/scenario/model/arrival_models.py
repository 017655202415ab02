"""Models of the entries of `workload` that are flows which arrive over time, many between the same two hosts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import permutations
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, PrivateAttr, WithJsonSchema, model_validator

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.expect.reserved import NAME_PATTERN
from mrc_testbed.testbed.scenario.model.flow_models import Ends, FlowEntry, numbers_of
from mrc_testbed.testbed.scenario.text.beside import DataFile, DataFileMistake, data_file
from mrc_testbed.testbed.scenario.text.fields import (
    MAX_QPS,
    WHOLE,
    FaultName,
    HostNames,
    PositiveDuration,
    Share,
    Size,
    Whole,
    given,
    refuse,
)
from mrc_testbed.testbed.workloads.arrivals import Arrival
from mrc_testbed.testbed.workloads.fairness import line_rate
from mrc_testbed.testbed.workloads.flows import MAX_DEPTH, Flow
from mrc_testbed.testbed.workloads.poisson import PoissonTerms, poisson_flows
from mrc_testbed.testbed.workloads.sizes import SIZES, SizeCdf, read_cdf
from mrc_testbed.testbed.workloads.trace import TraceMistake, TraceRow, read_trace
from mrc_testbed.topos.names import host_name
from mrc_testbed.topos.shape import Shape

USUAL_QPS = 4
_NS = 1e9


def _file(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refuse("must be a file beside the scenario, such as flows.csv")
    return value


def _sizes(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refuse(f"must be one of {', '.join(SIZES)}, or a file beside the scenario, such as sizes.cdf")
    near = did_you_mean(value, SIZES) if "." not in value and value not in SIZES else ""
    if near:
        raise refuse(f"unknown sizes {value!r}{near}")
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
    _data: DataFile | None = PrivateAttr(default=None)

    @abstractmethod
    def by_pair(self, shape: Shape, seed: int) -> Mapping[tuple[str, str], tuple[Arrival, ...]]:
        """The flows from each host to each other, by begin."""

    def names(self) -> Iterable[str]:
        """Its own, and the bins."""
        return (self.group, *(name for name, _ in self.bins))

    def flows(self, shape: Shape, seed: int) -> Iterator[Flow]:
        """One a pair that has any."""
        return (self._flow(*pair, arrivals) for pair, arrivals in self.by_pair(shape, seed).items())

    def _flow(self, source: str, target: str, arrivals: tuple[Arrival, ...]) -> Flow:
        src, dst = numbers_of(source, target)
        groups = dict.fromkeys((self.group, *(group for one in arrivals for group in one.groups)))
        total = sum(one.size for one in arrivals)
        times = arrivals[0].start_ns, None, total
        common = self.message_bytes, self.qps, *times, self.depth, tuple(groups)
        return Flow(src, dst, *common, greedy=False, arrivals=arrivals)

    @property
    def data(self) -> DataFile | None:
        """Its file as it was read; None without one."""
        return self._data

    @contextmanager
    def _reading(self, key: str, name: str) -> Iterator[str]:
        """The text of a file; what is wrong with it is a mistake of this key."""
        try:
            self._data = data_file(name)
            yield self._data.text()
        except DataFileMistake as mistake:
            raise refuse(str(mistake), below=key) from None
        except TraceMistake as mistake:
            raise refuse(f"{name}:{mistake.line}: {mistake}", below=key) from None

    def groups_of(self, size: int) -> tuple[str, ...]:
        """The bin of a flow; none for one that is larger than all."""
        return next(((name,) for name, most in self.bins if size <= most), ())


class TraceEntry(Arriving):
    """Flows of a file."""

    kind: ClassVar[str] = "trace"

    file: File = Field(description="CSV with the columns start_s,src,dst,bytes[,name]", examples=["flows.csv"])
    stretch: Stretch = Field(default=1.0, description="times of the file are multiplied by it", examples=[4000])
    _rows: tuple[TraceRow, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _read(self) -> TraceEntry:
        with self._reading("file", self.file) as text:
            self._rows = read_trace(text)
            self._check_names()
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


class PoissonEntry(Arriving):
    """Flows that begin at random, from each host to any other."""

    kind: ClassVar[str] = "poisson"

    sizes: Annotated[str, PlainValidator(_sizes), WithJsonSchema({"type": "string"})] = Field(
        description=f"{', '.join(SIZES)}, or a file with lines `bytes percent`", examples=["websearch"]
    )
    load: Share = Field(description="of the line rate of each host", examples=["50%"])
    for_ns: PositiveDuration = Field(alias="for", description="how long flows begin", examples=["10s"])
    hosts: HostNames = Field(default=(), description="`all`, or a list", examples=["all"])
    _cdf: SizeCdf = PrivateAttr(default=SizeCdf(()))

    @model_validator(mode="after")
    def _read(self) -> PoissonEntry:
        if self.sizes in SIZES:
            self._cdf = SIZES[self.sizes]
            return self
        with self._reading("sizes", self.sizes) as text:
            self._cdf = read_cdf(text)
        return self

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """All that can be drawn."""
        hosts = self._hosts(shape)
        for (source, src), (target, dst) in permutations(enumerate(hosts), 2):
            places = (("hosts", source), ("hosts", target)) if self.hosts else ((), ())
            yield Ends(src, dst, self.group, *places)

    def _hosts(self, shape: Shape) -> tuple[str, ...]:
        return self.hosts or tuple(host_name(number) for number in range(shape.family.hosts))

    def terms(self, shape: Shape) -> PoissonTerms:
        """What is drawn by."""
        load = self.load / WHOLE
        times = self.start_ns, self.for_ns
        return PoissonTerms(self._hosts(shape), self._cdf, load, line_rate(shape), *times, self.group)

    def by_pair(self, shape: Shape, seed: int) -> Mapping[tuple[str, str], tuple[Arrival, ...]]:
        drawn = poisson_flows(self.terms(shape), seed)
        return {
            pair: tuple(Arrival(start_ns, size, self.groups_of(size)) for start_ns, size in flows)
            for pair, flows in drawn.items()
        }


ARRIVAL_KINDS: dict[str, type[Arriving]] = {model.kind: model for model in (TraceEntry, PoissonEntry)}
"""The kinds by their key."""
