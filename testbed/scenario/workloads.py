"""The kinds of `workload` as models, and what they come down to: a training job, or a set of flows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict, Field, field_validator, model_validator

from testbed.scenario.fields import Duration, FaultName, HostNames, Model, Pairs, Size, Switchable, Whole, refuse
from testbed.scenario.fields import HostList as Hosts
from testbed.scenario.fields import HostName as Host
from testbed.scenario.fields import PositiveDuration as Positive
from testbed.workloads.estimate import train_ns
from testbed.workloads.flows import MAX_DEPTH, Flow, flows_ns, plan_flows
from testbed.workloads.job import JobPlan
from testbed.workloads.train import plan_train
from topos.names import host_name, parse_host
from topos.plan import Plan
from topos.shape import Shape

MAX_STEPS = 1_000_000
MAX_QPS = 64
VICTIMS = "victims"
"""The name under which expectations find the victims of an incast."""


class Train(Model):
    """Training: every step is computation, then a ring allreduce of `allreduce` bytes over the hosts."""

    hosts: HostNames = Field(default=(), description="`all`, or a list of hosts", examples=["all"])
    steps: Whole = Field(ge=1, le=MAX_STEPS, description="number of steps", examples=[28])
    compute_ns: Duration = Field(alias="compute", description="computation in a step", examples=["100ms"])
    allreduce_bytes: Size = Field(alias="allreduce", description="size of the reduced buffer", examples=["4MiB"])

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that take part, in ring order."""
        return self.hosts or tuple(host_name(index) for index in range(shape.hosts))

    def pairs(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Who sends to whom: each rank to the next."""
        names = self.host_names(shape)
        yield from zip(names, (*names[1:], *names[:1]), strict=True)

    def estimate_ns(self, shape: Shape) -> int:
        """Clean duration."""
        return train_ns(shape, len(self.host_names(shape)), self.steps, self.compute_ns, self.allreduce_bytes)

    def plan_job(self, plan: Plan) -> JobPlan:
        """Programs and QPs."""
        hosts = [plan.host_by_name[name].index for name in self.host_names(plan.shape)]
        return plan_train(hosts, self.steps, self.compute_ns, self.allreduce_bytes)


Place = tuple[str | int, ...]


class Ends(NamedTuple):
    """A flow by the names of its hosts. The places are the keys below the entry where each was written."""

    src: str
    dst: str
    group: str
    src_place: Place
    dst_place: Place


class FlowEntry(Model, ABC):
    """What all kinds of flows share: messages of `message` bytes, one after the other, for a time or so many bytes."""

    kind: ClassVar[str]

    for_ns: Positive | None = Field(default=None, alias="for", description="how long it sends", examples=["10s"])
    total_bytes: Size | None = Field(default=None, alias="bytes", description="how much it sends", examples=["64MiB"])
    start_ns: Duration = Field(
        default=0, alias="start", description="when it begins, after the workload's start", examples=["0s"]
    )
    message_bytes: Size = Field(default=32 << 10, alias="message", description="of each write", examples=["32KiB"])
    qps: Whole = Field(default=1, ge=1, le=MAX_QPS, description="queue pairs of each flow", examples=[1])
    depth: Whole | None = Field(
        default=None, ge=1, le=MAX_DEPTH, description="messages queued on a QP; left out, enough to fill the line"
    )
    name: FaultName = Field(default="", description="what expectations call its flows", examples=["background"])

    @field_validator("name")
    @classmethod
    def _not_the_victims(cls, name: str) -> str:
        if name == VICTIMS:
            raise refuse(f"{VICTIMS!r} are the victims of an incast; choose another name")
        return name

    @model_validator(mode="after")
    def _one_end(self) -> FlowEntry:
        if (self.for_ns is None) == (self.total_bytes is None):
            raise refuse("needs `for: 10s` or `bytes: 64MiB`, one of the two")
        return self

    @abstractmethod
    def ends(self, shape: Shape) -> Iterator[Ends]:
        """Every flow, by the names of its hosts."""

    @property
    def group(self) -> str:
        """What expectations call its flows."""
        return self.name or self.kind

    def flow(self, ends: Ends) -> Flow:
        """The flow between two hosts that exist."""
        src, dst = parse_host(ends.src), parse_host(ends.dst)
        if src is None or dst is None:
            raise ValueError(f"{ends.src}->{ends.dst} is not between hosts")
        times = self.start_ns, self.for_ns, self.total_bytes
        return Flow(src, dst, self.message_bytes, self.qps, *times, self.depth, (ends.group,))


class Write(FlowEntry):
    """Flows between pairs of hosts, one after the other in the file, all at once in the run."""

    kind: ClassVar[str] = "write"

    source: Host = Field(default="", alias="from", description="the sending host", examples=["h0"])
    to: Host = Field(default="", description="the receiving host", examples=["h4"])
    pairs: Pairs = Field(default=(), description="several flows at once", examples=["[h0->h4, h1->h5]"])
    bidirectional: Switchable = Field(default=False, description="as much the other way", examples=["true"])

    @model_validator(mode="after")
    def _one_way_of_saying_it(self) -> Write:
        if self.pairs and (self.source or self.to):
            raise refuse("has `pairs` and also `from` or `to`; write one of the two")
        if not self.pairs and not (self.source and self.to):
            raise refuse("needs `from: h0, to: h4`, or `pairs: [h0->h4, h1->h5]`")
        return self

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """As written, each followed by its way back."""
        one = [Ends(self.source, self.to, self.group, ("from",), ("to",))] if self.source else []
        for ends in one or _ends_of(self.pairs, self.group, "pairs"):
            yield ends
            if self.bidirectional:
                yield Ends(ends.dst, ends.src, self.group, ends.dst_place, ends.src_place)


class Permutation(FlowEntry):
    """Every host sends to one and receives from one: host i of a group to host i of the next group."""

    kind: ClassVar[str] = "permutation"

    def ends(self, shape: Shape) -> Iterator[Ends]:
        """In a fabric of one group each host sends to the next one."""
        step = shape.hosts_per_t0 if shape.t0_groups > 1 else 1
        for host in range(shape.hosts):
            yield Ends(host_name(host), host_name((host + step) % shape.hosts), self.group, (), ())


class Incast(FlowEntry):
    """Several hosts send to one, beside flows that have nothing to do with it and should not suffer."""

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


FLOW_KINDS: dict[str, type[FlowEntry]] = {model.kind: model for model in (Write, Permutation, Incast)}
TRAIN = "train"
WORKLOAD_KINDS: dict[str, type[Model]] = {TRAIN: Train, **FLOW_KINDS}
"""The kinds by their key."""


def _exactly_one(schema: dict[str, Any]) -> None:
    """To editors: one key, and never `null`, which here only means that a key is not there."""
    schema |= {"minProperties": 1, "maxProperties": 1}
    for kind in schema["properties"].values():
        kind |= kind.pop("anyOf")[0]
        del kind["default"]


class WorkloadItem(Model):
    """One entry of `workload`: exactly one of its keys."""

    model_config = ConfigDict(json_schema_extra=_exactly_one)

    train: Train | None = Field(
        default=None, description="a training job", examples=["{steps: 28, compute: 100ms, allreduce: 4MiB}"]
    )
    write: Write | None = Field(
        default=None, description="flows between pairs of hosts", examples=["{from: h0, to: h4, for: 10s}"]
    )
    permutation: Permutation | None = Field(
        default=None, description="every host sends to one host", examples=["{for: 10s}"]
    )
    incast: Incast | None = Field(
        default=None, description="several hosts send to one", examples=["{to: h4, from: [h0, h1], for: 10s}"]
    )

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, raw: Any) -> Any:
        if isinstance(raw, dict):
            kinds = [key for key in raw if key in WORKLOAD_KINDS]
            if len(kinds) > 1:
                raise refuse(f"has two kinds, {kinds[0]} and {kinds[1]}; write two entries", key=kinds[1])
            for key in kinds:
                if raw[key] is None:
                    example = (cls.model_fields[key].examples or [])[:1]
                    raise refuse(f"{key} needs its keys, such as {key}: {''.join(map(str, example))}", key=key)
            if not raw:
                raise refuse(f"says nothing about what the hosts do; one of {', '.join(WORKLOAD_KINDS)}")
        return raw

    @property
    def flows(self) -> FlowEntry | None:
        """The entry, where it is one of flows."""
        return self.write or self.permutation or self.incast


@dataclass(frozen=True, slots=True)
class FlowSet:
    """All flows of a scenario."""

    flows: tuple[Flow, ...]

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that send or receive."""
        return tuple(map(host_name, sorted({host for flow in self.flows for host in (flow.src, flow.dst)})))

    def pairs(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Who sends to whom."""
        yield from ((host_name(flow.src), host_name(flow.dst)) for flow in self.flows)

    def estimate_ns(self, shape: Shape) -> int:
        """Clean duration."""
        return flows_ns(shape, self.flows)

    def plan_job(self, plan: Plan) -> JobPlan:
        """Programs and QPs."""
        return plan_flows(plan.shape, self.flows)

    def named(self, name: str) -> tuple[Flow, ...]:
        """The flows of a group, or the one of that name; none when there is no such name."""
        return tuple(flow for flow in self.flows if name == flow.name or name in flow.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that `named` knows: groups first."""
        groups = dict.fromkeys(group for flow in self.flows for group in flow.groups)
        return (*groups, *(flow.name for flow in self.flows))


def flow_set(entries: list[FlowEntry], shape: Shape) -> FlowSet:
    """Every flow of several entries. Raises ValueError for names that are not those of hosts."""
    return FlowSet(tuple(entry.flow(ends) for entry in entries for ends in entry.ends(shape)))
