"""Models of jobs of steps: `train`, and single collectives as entries of `workload`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, PlainValidator, WithJsonSchema, field_validator, model_validator

from mrc_testbed.testbed.expect.reserved import NAME_PATTERN
from mrc_testbed.testbed.scenario.text.fields import (
    MAX_QPS,
    Duration,
    FaultName,
    HostNames,
    Model,
    Name,
    Size,
    Whole,
    given,
    refuse,
)
from mrc_testbed.testbed.scenario.text.one_key import OneKey
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.workloads.collective import MESSAGE_BYTES, Collective, Terms
from mrc_testbed.testbed.workloads.steps import ALL, Compute, Exchange, StepAction, StepJob, Together
from mrc_testbed.topos.names import host_name, parse_host
from mrc_testbed.topos.shape import Shape

MAX_STEPS = 1_000_000
MAX_MICRO_BATCHES = 1024


class PlacedExchange(NamedTuple):
    """A collective of a step and its place in the file; `size_place` is that of its size."""

    exchange: Exchange
    place: KeyPath
    size_place: KeyPath


class Sized(Model):
    """Keys of all collectives. `plugin`: the collective, if from a plugin."""

    plugin: ClassVar[type[Collective] | None] = None

    size_bytes: Size = Field(alias="size", description="data of each rank", examples=["4MiB"])
    qps: Whole = Field(default=1, ge=1, le=MAX_QPS, description="queue pairs between two ranks", examples=[1])
    message_bytes: Size = Field(
        default=MESSAGE_BYTES, alias="message", description="of each write that a chunk is cut into", examples=["1MiB"]
    )

    def terms(self) -> Terms:
        """The parameters for planning, as the workloads take them."""
        return Terms(self.size_bytes, self.qps, self.message_bytes)


class Staged(Sized):
    """Extra keys of a pipeline; its size is that of a micro-batch."""

    micro_batches: Whole = Field(
        default=4, ge=1, le=MAX_MICRO_BATCHES, description="sent through the stages in a step", examples=[4]
    )
    compute_ns: Duration = Field(
        default=0, alias="compute", description="computation of a stage for each", examples=["5ms"]
    )

    def terms(self) -> Terms:
        """The parameters for planning, as the workloads take them."""
        return Terms(self.size_bytes, self.qps, self.message_bytes, self.micro_batches, self.compute_ns)


class Over(Model):
    """Of a collective inside a step: its groups."""

    over: Name = Field(default=ALL, description="an axis of `parallel`; left out, all hosts", examples=["data"])

    @property
    def local_axis(self) -> str:
        """The axis along which ranks are one node, which they need no network in; ALL: there is none."""
        return ALL


class OverAxis(Over, Sized):
    """A collective in a step."""


class BetweenNodes(OverAxis):
    """An all-to-all in a step."""

    local: Name = Field(
        default=ALL,
        description="an axis of `parallel` whose ranks are one node: what they have for each other stays in it",
        examples=["rails"],
    )

    @property
    def local_axis(self) -> str:
        return self.local


class StagesOverAxis(Over, Staged):
    """A pipeline in a step."""


class StepItem(OneKey):
    """A part of a step."""

    empty: ClassVar[str] = "has no kind of step part"

    compute: Annotated[Duration | None, given("100ms")] = Field(
        default=None, description="computation", examples=["100ms"]
    )
    allreduce: OverAxis | None = Field(default=None, description="ring all-reduce", examples=["{size: 4MiB}"])
    reduce_scatter: OverAxis | None = Field(
        default=None, alias="reduce-scatter", description="first half of an allreduce", examples=["{size: 4MiB}"]
    )
    all_gather: OverAxis | None = Field(
        default=None, alias="all-gather", description="second half of an allreduce", examples=["{size: 4MiB}"]
    )
    sendrecv: OverAxis | None = Field(
        default=None, description="each rank sends to the next", examples=["{size: 64KiB}"]
    )
    all_to_all: BetweenNodes | None = Field(
        default=None, alias="all-to-all", description="each rank sends to every other", examples=["{size: 1MiB}"]
    )
    pipeline: StagesOverAxis | None = Field(
        default=None, description="micro-batches go through all ranks", examples=["{size: 256KiB, micro_batches: 4}"]
    )

    def part(self) -> Compute | Exchange:
        """The parameters for planning, as the workloads take them."""
        kind, value = self.chosen
        if kind == "compute":
            return Compute(value)
        return Exchange(kind, value.over, value.terms(), value.plugin, value.local_axis)

    def placed(self, place: KeyPath) -> Iterator[PlacedExchange]:
        """The collective, at `place` in the file."""
        part, kind = self.part(), self.chosen[0]
        if isinstance(part, Exchange):
            yield PlacedExchange(part, (*place, kind), (*place, kind, "size"))


class StepPart(StepItem):
    """An entry of `step`."""

    together: tuple[StepItem, ...] | None = Field(
        default=None, description="parts that begin together", examples=["[{compute: 100ms}, {allreduce: {...}}]"]
    )

    @field_validator("together")
    @classmethod
    def _not_empty(cls, together: tuple[StepItem, ...] | None) -> tuple[StepItem, ...] | None:
        if together == ():
            raise refuse("must have at least one part, such as `- allreduce: {size: 4MiB}`")
        return together

    def whole_part(self) -> StepAction:
        """The parameters for planning, as the workloads take them."""
        return self.part() if self.together is None else Together(tuple(item.part() for item in self.together))

    def placed(self, place: KeyPath) -> Iterator[PlacedExchange]:
        """The collectives, at `place` in the file."""
        if self.together is None:
            yield from super().placed(place)
        for index, item in enumerate(self.together or ()):
            yield from item.placed((*place, "together", index))


def _axes(value: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, dict) or not value:
        raise refuse("must be a mapping of axes, innermost first, such as {tensor: 2, data: 4}")
    for name, size in value.items():
        if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
            raise refuse(f"{name!r} is not the name of an axis, such as data")
        if type(size) is not int or size < 1:
            raise refuse("must be a whole number of at least 1, such as 2", key=name)
    return tuple(value.items())


ParallelAxes = Annotated[
    tuple[tuple[str, int], ...],
    PlainValidator(_axes),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}, "minProperties": 1}),
]
"""Names and sizes, the axis of neighbouring hosts first."""


class StepEntry(Model, ABC):
    """An entry of `workload` that is a job of steps."""

    kind: ClassVar[str]

    hosts: HostNames = Field(default=(), description="`all`, or a list of hosts", examples=["all"])
    name: FaultName = Field(default="", description="what expectations call the job", examples=["job-a"])

    @property
    def has_steps(self) -> bool:
        """Whether its steps are known."""
        return True

    @property
    @abstractmethod
    def step_count(self) -> int:
        """How many steps are measured."""

    @property
    @abstractmethod
    def warm_up_count(self) -> int:
        """How many steps run before the first measured one."""

    @property
    @abstractmethod
    def parts(self) -> tuple[StepAction, ...]:
        """The parts of a step."""

    @abstractmethod
    def placed(self) -> Iterator[PlacedExchange]:
        """The collectives with their places below the entry, in step order."""

    @property
    def axes(self) -> tuple[tuple[str, int], ...]:
        """The axes of the hosts."""
        return ()

    @property
    def total_steps(self) -> int:
        """Steps of the warm-up too."""
        return self.warm_up_count + self.step_count

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that take part, by rank."""
        return self.all_host_names(shape)

    def all_host_names(self, shape: Shape) -> tuple[str, ...]:
        """Hosts that take part in any way."""
        return self.hosts or tuple(host_name(index) for index in range(shape.hosts))

    def job(self, shape: Shape, first_rank: int = 0) -> StepJob:
        """The job; `first_rank`: how many ranks the jobs before it have. Raises ValueError for an impossible one."""
        numbers = tuple(parse_host(name) for name in self.host_names(shape))
        hosts = tuple(number for number in numbers if number is not None)
        return StepJob(hosts, self.step_count, self.parts, self.warm_up_count, self.axes, first_rank)


class Train(StepEntry):
    """Training: steps of computation and collectives. The short form is computation, then an allreduce of all hosts."""

    kind: ClassVar[str] = "train"

    steps: Whole = Field(ge=1, le=MAX_STEPS, description="number of steps", examples=[28])
    warm_up: Whole = Field(default=0, ge=0, le=1000, description="steps before them that do not count", examples=[1])
    compute_ns: Annotated[Duration | None, given("100ms")] = Field(
        default=None, alias="compute", description="computation in a step", examples=["100ms"]
    )
    allreduce_bytes: Annotated[Size | None, given("4MiB")] = Field(
        default=None, alias="allreduce", description="size of the reduced buffer", examples=["4MiB"]
    )
    qps: Whole = Field(
        default=1, ge=1, le=MAX_QPS, description="queue pairs between two ranks, in the short form", examples=[1]
    )
    parallel: ParallelAxes = Field(
        default=(),
        description="axes of the hosts, innermost first",
        examples=["{tensor: 2, data: 4}"],
        json_schema_extra={"default": {}},
    )
    step: tuple[StepPart, ...] = Field(
        default=(), description="the parts of a step", examples=["[{compute: 100ms}, {allreduce: {size: 4MiB}}]"]
    )

    @model_validator(mode="before")
    @classmethod
    def _one_form(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        short = [key for key in ("compute", "allreduce") if key in raw]
        if "step" in raw:
            if both := next((key for key in (*short, "qps") if key in raw), None):
                raise refuse(f"has `step` and also `{both}`; put that into `step`", key=both)
            if raw["step"] == []:
                raise refuse("must have at least one part, such as `- allreduce: {size: 4MiB}`", key="step")
        elif len(short) < 2:
            lacking = "allreduce" if "compute" in raw else "compute"
            example = "4MiB" if lacking == "allreduce" else "100ms"
            raise refuse(f"the key {lacking!r} is missing; write for example `{lacking}: {example}`, or `step: [...]`")
        return raw

    @property
    def step_count(self) -> int:
        """How many steps are measured."""
        return self.steps

    @property
    def warm_up_count(self) -> int:
        """How many steps run before the first measured one."""
        return self.warm_up

    @property
    def axes(self) -> tuple[tuple[str, int], ...]:
        return self.parallel

    @property
    def parts(self) -> tuple[StepAction, ...]:
        if self.step:
            return tuple(part.whole_part() for part in self.step)
        return Compute(self.compute_ns or 0), self._allreduce

    @property
    def _allreduce(self) -> Exchange:
        return Exchange("allreduce", ALL, Terms(self.allreduce_bytes or 0, self.qps))

    def placed(self) -> Iterator[PlacedExchange]:
        if not self.step:
            yield PlacedExchange(self._allreduce, ("allreduce",), ("allreduce",))
        for index, part in enumerate(self.step):
            yield from part.placed(("step", index))


class Alone(StepEntry, Sized):
    """A collective by itself: every step is one of them."""

    iterations: Whole = Field(ge=1, le=MAX_STEPS, description="how many count", examples=[20])
    warm_up: Whole = Field(default=1, ge=0, le=1000, description="how many come before them", examples=[2])

    @property
    def step_count(self) -> int:
        """How many steps are measured."""
        return self.iterations

    @property
    def warm_up_count(self) -> int:
        """How many steps run before the first measured one."""
        return self.warm_up

    @cached_property
    def _exchange(self) -> Exchange:
        return Exchange(self.kind, ALL, self.terms(), self.plugin)

    @property
    def parts(self) -> tuple[StepAction, ...]:
        return (self._exchange,)

    def placed(self) -> Iterator[PlacedExchange]:
        yield PlacedExchange(self._exchange, (), ("size",))


class AllreduceEntry(Alone):
    """Ring all-reduce by itself."""

    kind: ClassVar[str] = "allreduce"


class ReduceScatterEntry(Alone):
    """Ring reduce-scatter by itself."""

    kind: ClassVar[str] = "reduce-scatter"


class AllGatherEntry(Alone):
    """Ring all-gather by itself."""

    kind: ClassVar[str] = "all-gather"


class SendRecvEntry(Alone):
    """Send and receive by itself."""

    kind: ClassVar[str] = "sendrecv"


class AllToAllEntry(Alone):
    """All-to-all by itself."""

    kind: ClassVar[str] = "all-to-all"


class PipelineEntry(Alone, Staged):
    """Pipeline by itself."""

    kind: ClassVar[str] = "pipeline"


STEP_KINDS: dict[str, type[StepEntry]] = {
    model.kind: model
    for model in (
        *(Train, AllreduceEntry, ReduceScatterEntry, AllGatherEntry),
        *(SendRecvEntry, AllToAllEntry, PipelineEntry),
    )
}
"""The kinds by their key."""
