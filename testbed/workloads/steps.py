"""A job of steps: computation and collectives, in sequence or together, over the groups of several axes. Pure.

The ranks form a grid. Along each axis, ranks that differ only there form a group, and a collective over an axis runs in
all of its groups at once. The programs hold two steps, an even and an odd one, and a repeat count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

from mrc_testbed.hosts.blocks import PERIOD
from mrc_testbed.testbed.workloads.all_to_all import AllToAll
from mrc_testbed.testbed.workloads.collective import Collective, Group, Terms
from mrc_testbed.testbed.workloads.fairness import links_ns, pair_of
from mrc_testbed.testbed.workloads.job import JobPlan, JsonOperation, QpSpec, Tracks
from mrc_testbed.testbed.workloads.pipeline import Pipeline
from mrc_testbed.testbed.workloads.ring import AllGather, ReduceScatter, Ring
from mrc_testbed.testbed.workloads.sendrecv import SendRecv
from mrc_testbed.topos.bundles import Pair
from mrc_testbed.topos.shape import Shape

COLLECTIVES: Mapping[str, type[Collective]] = {
    one.kind: one for one in (Ring, ReduceScatter, AllGather, SendRecv, AllToAll, Pipeline)
}
"""The kinds by their key."""
ALL = ""
"""The axis of all ranks."""
WRITTEN_STEPS = 2
"""Slots alternate between even and odd steps."""


@dataclass(frozen=True, slots=True)
class Compute:
    """All ranks compute for a time."""

    ns: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective in every group along an axis (ALL: one group of all ranks). `plugin`: its class, if from a
    plugin. `local`: the axis along which ranks are one node, if their chunks for each other stay in it."""

    kind: str
    axis: str
    terms: Terms
    plugin: type[Collective] | None = None
    local: str = ALL

    @property
    def collective(self) -> type[Collective]:
        """What it is made of."""
        return self.plugin or COLLECTIVES[self.kind]


@dataclass(frozen=True, slots=True)
class Together:
    """Parts that start together; the step continues when all are done."""

    parts: tuple[Compute | Exchange, ...]


class PartTimes(NamedTuple):
    """Of a part of a step. `busy_ns`: how long a host's ports are busy; `behind_ns`: how much longer links between
    switches are, which the part takes too."""

    duration_ns: float
    busy_ns: float
    behind_ns: float


StepAction = Compute | Exchange | Together


@dataclass(frozen=True)
class StepJob:
    """`warm_up` steps that do not count, then `steps`, of `parts` each.

    `hosts[r]` is the host number of the job's rank r, which in the whole workload has number `first_rank + r`: the data
    of a rank follow from that number. `axes`: (name, ranks along it), the axis of neighbouring ranks first.
    Planning raises ValueError if their product is not the number of hosts, for an unknown axis, and for an impossible
    collective.
    """

    hosts: tuple[int, ...]
    steps: int
    parts: tuple[StepAction, ...]
    warm_up: int = 0
    axes: tuple[tuple[str, int], ...] = ()
    first_rank: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"a job needs at least 1 step, not {self.steps}")
        if self.axes and prod(size for _, size in self.axes) != len(self.hosts):
            raise ValueError(f"axes {self.axes} do not hold {len(self.hosts)} ranks")

    @property
    def total_steps(self) -> int:
        """Steps of the warm-up too."""
        return self.warm_up + self.steps

    def groups(self, axis: str) -> list[Group]:
        """All groups along an axis."""
        if axis == ALL:
            return [self._group(0, 1, len(self.hosts))]
        stride = 1
        for name, size in self.axes:
            if name == axis:
                firsts = [rank for rank in range(len(self.hosts)) if rank // stride % size == 0]
                return [self._group(first, stride, size) for first in firsts]
            stride *= size
        raise ValueError(f"unknown axis {axis!r}")

    def _group(self, first: int, stride: int, size: int) -> Group:
        members = range(first, first + stride * size, stride)
        ranks = tuple(self.first_rank + member for member in members)
        return Group(ranks, tuple(self.hosts[member] for member in members))

    def _groups_of(self, exchange: Exchange) -> list[Group]:
        """Its groups; all ranks know their nodes where it has some."""
        groups = self.groups(exchange.axis)
        if exchange.local == ALL:
            return groups
        node_of = {rank: node for node, group in enumerate(self.groups(exchange.local)) for rank in group.ranks}
        return [replace(group, nodes=tuple(node_of[rank] for rank in group.ranks)) for group in groups]

    @property
    def exchanges(self) -> list[Exchange]:
        """In step order."""
        flat = [one for part in self.parts for one in (part.parts if isinstance(part, Together) else (part,))]
        return [one for one in flat if isinstance(one, Exchange)]

    @cached_property
    def collectives(self) -> list[list[Collective]]:
        """The collectives of all groups, per exchange. Each exchange has its own QPs and places."""
        found: list[list[Collective]] = []
        place, names = 0, self._names()
        for exchange, name in zip(self.exchanges, names, strict=True):
            make = exchange.collective
            found.append([make(group, exchange.terms, place, name) for group in self._groups_of(exchange)])
            place += found[-1][0].data_bytes
        return found

    def _names(self) -> list[str]:
        kinds = [exchange.kind for exchange in self.exchanges]
        return [
            kind if kinds.count(kind) == 1 else f"{kind}-{kinds[: index + 1].count(kind)}"
            for index, kind in enumerate(kinds)
        ]

    def qps(self) -> Iterator[QpSpec]:
        """All QPs."""
        return (qp for of_groups in self.collectives for one in of_groups for qp in one.qps())

    @property
    def memory_bytes(self) -> int:
        """Memory of all hosts together."""
        prepared = max(
            (min(one.terms.message_bytes, one.chunk_bytes) for each in self.collectives for one in each), default=0
        )
        return sum(qp.region_bytes for qp in self.qps()) + len(self.hosts) * (prepared + PERIOD)

    @property
    def operations(self) -> int:
        """Approximate number of operations in all programs."""
        of_each = (
            sum(1 for _ in one.operations(one.group.size // 2, 0)) * one.group.size
            for each in self.collectives
            for one in each
        )
        return WRITTEN_STEPS * sum(of_each)

    def plan(self) -> JobPlan:
        """The QPs of the job, and the program of each rank."""
        ranks = {host: rank for rank, host in enumerate(self.hosts, self.first_rank)}
        return JobPlan(tuple(self.qps()), Tracks(ranks, lambda host: [self._program(ranks[host])]), self.hosts)

    def _program(self, rank: int) -> list[JsonOperation]:
        turns, rest = divmod(self.total_steps, WRITTEN_STEPS)
        body = [operation for step in range(WRITTEN_STEPS) for operation in self._step(rank, step)]
        repeated: list[JsonOperation] = [["repeat", turns, WRITTEN_STEPS, body]] if turns else []
        return [
            *repeated,
            *(operation for step in range(rest) for operation in self._step(rank, self.total_steps - rest + step)),
        ]

    def _step(self, rank: int, step: int) -> list[JsonOperation]:
        """A step of one rank."""
        of_exchanges = iter(self.collectives)

        def of_part(part: Compute | Exchange) -> list[JsonOperation]:
            if isinstance(part, Compute):
                return [["compute", part.ns]]
            return _of_rank(next(of_exchanges), rank, step)

        written: list[JsonOperation] = [["begin", step]]
        for part in self.parts:
            if isinstance(part, Together):
                written.append(["together", *(of_part(one) for one in part.parts)])
            else:
                written += of_part(part)
        return [*written, ["end", step]]

    def step_ns(self, shape: Shape) -> int:
        """Clean duration of a step."""
        return round(sum(self.parts_ns(shape)))

    def parts_ns(self, shape: Shape) -> Iterator[float]:
        """Clean duration of each part of a step."""
        return (part.duration_ns + part.behind_ns for part in self.clean_parts(shape))

    def most_busy(self, shape: Shape) -> float:
        """The share of line rate at which a rank sends in the part of a step that asks for most of it, where no links
        between switches keep it from that."""
        parts = (part for part in self.clean_parts(shape) if part.duration_ns)
        return max((part.busy_ns / part.duration_ns for part in parts), default=0.0)

    def clean_parts(self, shape: Shape) -> Iterator[PartTimes]:
        """Clean times of each part of a step."""
        of_exchanges = iter(self.collectives)
        for part in self.parts:
            each = part.parts if isinstance(part, Together) else (part,)
            groups = [next(of_exchanges) for one in each if isinstance(one, Exchange)]
            computing = [one.ns for one in each if isinstance(one, Compute)]
            yield _clean_times(shape, computing, groups)

    def earliest_step_ns(self, shape: Shape) -> float:
        """From the moment at which the last rank begins a step until the last one ends it: never sooner."""
        of_exchanges = iter(self.collectives)

        def earliest(part: Compute | Exchange) -> float:
            if isinstance(part, Compute):
                return part.ns
            # Which group the last rank to begin belongs to is not known.
            return min(one.earliest_ns(shape) for one in next(of_exchanges))

        return sum(
            max(earliest(one) for one in (part.parts if isinstance(part, Together) else (part,))) for part in self.parts
        )

    def clean_ns(self, shape: Shape) -> int:
        """Clean duration of the job."""
        return self.total_steps * self.step_ns(shape)


def _clean_times(shape: Shape, computing: Sequence[int], exchanges: Sequence[Sequence[Collective]]) -> PartTimes:
    """Of what begins together. The groups of an exchange differ only in their ways."""
    busy_ns = sum(groups[0].busy_ns(shape) for groups in exchanges)
    sent: dict[Pair, float] = {}
    for src, dst, count in (each for groups in exchanges for one in groups for each in one.traffic()):
        if pair := pair_of(shape, src, dst):
            sent[pair] = sent.get(pair, 0.0) + count
    # The longest decides, unless all of them together have more to send than fits into its time.
    longest_ns = max(*computing, *(one.clean_ns(shape) for groups in exchanges for one in groups), busy_ns)
    return PartTimes(longest_ns, busy_ns, max(0.0, links_ns(shape, sent) - busy_ns) if exchanges else 0.0)


def _of_rank(groups: list[Collective], rank: int, step: int) -> list[JsonOperation]:
    """The operations of a rank in its group."""
    one = next(one for one in groups if rank in one.group.ranks)
    return list(one.operations(one.group.ranks.index(rank), step))
