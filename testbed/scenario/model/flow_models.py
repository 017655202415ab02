"""Models of the entries of `workload` that are flows between hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field, field_validator, model_validator

from mrc_testbed.testbed.scenario.text.fields import (
    MAX_QPS,
    Duration,
    FaultName,
    Model,
    Pairs,
    Size,
    Switchable,
    Whole,
    given,
    refuse,
)
from mrc_testbed.testbed.scenario.text.fields import HostList as Hosts
from mrc_testbed.testbed.scenario.text.fields import HostName as Host
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration as Positive
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.workloads.flows import MAX_DEPTH, Flow
from mrc_testbed.topos.names import host_name, parse_host
from mrc_testbed.topos.shape import Shape

MAX_ITERATIONS = 10_000_000
VICTIMS = "victims"
"""The name of an incast's victims in expectations."""


class Ends(NamedTuple):
    """A flow by host names, with the place of each in the file. `said`: before what is wrong with it, where a data file
    has it."""

    src: str
    dst: str
    group: str
    src_place: KeyPath
    dst_place: KeyPath
    said: str = ""


class FlowEntry(Model, ABC):
    """Common keys of flows: messages of `message` bytes in sequence, from `start` on."""

    kind: ClassVar[str]

    start_ns: Duration = Field(
        default=0, alias="start", description="when it begins, after the workload's start", examples=["0s"]
    )
    message_bytes: Size = Field(default=32 << 10, alias="message", description="of each write", examples=["32KiB"])
    name: FaultName = Field(default="", description="what expectations call its flows", examples=["background"])

    @field_validator("name")
    @classmethod
    def _not_the_victims(cls, name: str) -> str:
        if name == VICTIMS:
            raise refuse(f"{VICTIMS!r} are the victims of an incast; choose another name")
        return name

    @abstractmethod
    def ends(self, shape: Shape) -> Iterator[Ends]:
        """Every flow, by the names of its hosts."""

    @abstractmethod
    def flows(self, shape: Shape, seed: int) -> Iterator[Flow]:
        """Every flow, or all flows of a pair as one. Raises ValueError for names that are not hosts."""

    def names(self) -> Iterable[str]:
        """What expectations can call its flows, or some of them."""
        return (self.group,)

    @property
    def group(self) -> str:
        """The name of its flows in expectations."""
        return self.name or self.kind


class Ending(FlowEntry):
    """Flows that may end after a time."""

    for_ns: Annotated[Positive | None, given("10s")] = Field(
        default=None, alias="for", description="how long it sends", examples=["10s"]
    )

    @abstractmethod
    def flow(self, ends: Ends) -> Flow:
        """The flow between two existing hosts."""

    def flows(self, shape: Shape, seed: int) -> Iterator[Flow]:
        """One for each of its ends."""
        return (self.flow(ends) for ends in self.ends(shape))


class Greedy(Ending):
    """Flows that take all they can get, for a time or a number of bytes."""

    total_bytes: Annotated[Size | None, given("64MiB")] = Field(
        default=None, alias="bytes", description="how much it sends", examples=["64MiB"]
    )
    warm_up_ns: Duration = Field(
        default=0, alias="warm_up", description="time after its start that is not measured", examples=["1s"]
    )
    qps: Whole = Field(default=1, ge=1, le=MAX_QPS, description="queue pairs of each flow", examples=[1])
    depth: Annotated[Whole | None, given("1")] = Field(
        default=None, ge=1, le=MAX_DEPTH, description="messages queued on a QP; left out, enough to fill the line"
    )

    @model_validator(mode="after")
    def _one_end(self) -> Greedy:
        if (self.for_ns is None) == (self.total_bytes is None):
            raise refuse("needs `for: 10s` or `bytes: 64MiB`, one of the two")
        return self

    def flow(self, ends: Ends) -> Flow:
        src, dst = numbers_of(ends.src, ends.dst)
        times = self.start_ns, self.for_ns, self.total_bytes
        groups = (ends.group,)
        return Flow(src, dst, self.message_bytes, self.qps, *times, self.depth, groups, warm_up_ns=self.warm_up_ns)


class Between(Ending):
    """Flows between named hosts."""

    source: Host = Field(default="", alias="from", description="the sending host", examples=["h0"])
    to: Host = Field(default="", description="the receiving host", examples=["h4"])
    pairs: Pairs = Field(default=(), description="several pairs", examples=["[h0->h4, h1->h5]"])
    bidirectional: Switchable = Field(default=False, description="the same in the other direction", examples=["true"])

    @model_validator(mode="after")
    def _one_way_of_saying_it(self) -> Between:
        if self.pairs and (self.source or self.to):
            raise refuse("has `pairs` and also `from` or `to`; write one of the two")
        if not self.pairs and not (self.source and self.to):
            raise refuse("needs `from: h0, to: h4`, or `pairs: [h0->h4, h1->h5]`")
        return self

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """As written, each followed by its reverse direction."""
        one = [Ends(self.source, self.to, self.group, ("from",), ("to",))] if self.source else []
        for ends in one or _ends_of(self.pairs, self.group, "pairs"):
            yield ends
            if self.bidirectional:
                yield Ends(ends.dst, ends.src, self.group, ends.dst_place, ends.src_place)


class Write(Between, Greedy):
    """Flows between pairs of hosts, all at once."""

    kind: ClassVar[str] = "write"


class Latency(Between):
    """One message at a time between pairs of hosts, as `ib_write_lat` does it."""

    kind: ClassVar[str] = "latency"

    message_bytes: Size = Field(default=2, alias="message", description="of each write", examples=["2B"])
    iterations: Annotated[Whole | None, given("1000")] = Field(
        default=None, ge=1, le=MAX_ITERATIONS, description="messages that count", examples=[1000]
    )
    warm_up: Whole = Field(default=10, ge=0, le=1000, description="messages before them", examples=[10])

    @model_validator(mode="after")
    def _one_end(self) -> Latency:
        if (self.for_ns is None) == (self.iterations is None):
            raise refuse("needs `for: 10s` or `iterations: 1000`, one of the two")
        return self

    def flow(self, ends: Ends) -> Flow:
        total = None if self.iterations is None else (self.warm_up + self.iterations) * self.message_bytes
        src, dst = numbers_of(ends.src, ends.dst)
        times = self.start_ns, self.for_ns, total
        groups, warm_up = (ends.group,), self.warm_up
        return Flow(src, dst, self.message_bytes, 1, *times, 1, groups, warm_up_messages=warm_up, greedy=False)


def numbers_of(source: str, target: str) -> tuple[int, int]:
    """The hosts by number. Raises ValueError for names that are none."""
    src, dst = parse_host(source), parse_host(target)
    if src is None or dst is None:
        raise ValueError(f"{source}->{target} is not between hosts")
    return src, dst


class Permutation(Greedy):
    """Every host sends to one and receives from one: each host on a T0 to that at its place on the next T0."""

    kind: ClassVar[str] = "permutation"

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """Hosts are counted T0 by T0, and each sends to the one that comes as many places later as a T0 has hosts at
        most. In a fabric of one T0 each host sends to the next one."""
        racks = [rack for rack in shape.family.below if rack]
        hosts = [host for rack in racks for host in rack]
        step = max(map(len, racks)) if len(racks) > 1 else 1
        for place, host in sorted(enumerate(hosts), key=lambda each: each[1]):
            yield Ends(host_name(host), host_name(hosts[(place + step) % len(hosts)]), self.group, (), ())


class Incast(Greedy):
    """Several hosts send to one, beside unrelated flows that should not suffer."""

    kind: ClassVar[str] = "incast"

    to: Host = Field(description="the receiving host", examples=["h4"])
    sources: Hosts = Field(alias="from", description="the sending hosts", examples=["[h0, h1, h2]"])
    victims: Pairs = Field(default=(), description="flows between other hosts", examples=["[h7->h5]"])

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """The senders in order, then the victims."""
        for index, host in enumerate(self.sources):
            yield Ends(host, self.to, self.group, ("from", index), ("to",))
        yield from _ends_of(self.victims, VICTIMS, "victims")


def _ends_of(pairs: tuple[tuple[str, str], ...], group: str, key: str) -> Iterator[Ends]:
    for index, (src, dst) in enumerate(pairs):
        yield Ends(src, dst, group, (key, index), (key, index))


FLOW_KINDS: dict[str, type[FlowEntry]] = {model.kind: model for model in (Write, Latency, Permutation, Incast)}
"""The kinds by their key."""
