"""The base of all collectives: a group of ranks, the QPs between them, slots in their regions. Pure.

A kind of collective is one class in one file, built in or from a plugin (docs/extend.md). It defines between whom it
has QPs, how many slots it needs and of what size, the operations of a member in a step, and the time without
disturbance. It must explain why a slot may be reused: when a peer writes it in a later step, its owner must be done
with it, including checks and retransmissions of forwarded bytes. (Bytes that a rank puts from its own data never
change, and can be resent at any time.)

Between two members there are `Terms.qps` QPs. Each carries its part of every chunk, in its own slots, with an immediate
at the end of each part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from mrc_testbed.testbed.workloads.estimate import earliest_ns, links_between, most_links_between, transfer_ns, wire_ns
from mrc_testbed.testbed.workloads.job import JsonOperation, QpSpec
from mrc_testbed.topos.shape import Shape

MESSAGE_BYTES = 1 << 20
"""Default size of the WRITEs that a chunk is cut into: a sender's memory grows with it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Parameters of a collective.

    `size_bytes` is of each rank's data; of a pipeline, of each micro-batch. `compute_ns`: computation of each stage of
    a pipeline for each of its `micro_batches`. `own`: an instance of the collective's `Keys`, None without them.
    """

    size_bytes: int
    qps: int = 1
    message_bytes: int = MESSAGE_BYTES
    micro_batches: int = 1
    compute_ns: int = 0
    own: Any = None


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that work together, in order, and their host numbers.

    `nodes`: the number of each rank's node, in the same order, where ranks of one node send each other nothing over the
    network; empty where all do.
    """

    ranks: tuple[int, ...]
    hosts: tuple[int, ...]
    nodes: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)


class Part(NamedTuple):
    """A range of bytes."""

    offset: int
    length: int


def part(length: int, parts: int, number: int) -> Part:
    """One of several parts, as equal as whole bytes allow; some may be empty."""
    begin, end = number * length // parts, (number + 1) * length // parts
    return Part(begin, end - begin)


class Hop(NamedTuple):
    """From member to member of a group, modulo its size."""

    src: int
    dst: int


@dataclass(frozen=True, slots=True)
class Collective(ABC):
    """A collective of one group, as a part of a step. `place`: offset of its data within each rank's data.

    Raises ValueError if the group is too small or the data are less than `least_bytes`.
    """

    kind: ClassVar[str] = "collective"
    formula: ClassVar[str] = ""
    """How `clean_ns` reckons, for people; `to(x)` is `estimate.transfer_ns`. Empty: nobody says."""
    Keys: ClassVar[type | None] = None
    """A dataclass of the extra keys of a plugin's collective, all with defaults."""

    group: Group
    terms: Terms
    place: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        if self.group.size < 2:
            raise ValueError(f"{self.kind} needs at least 2 hosts")
        if len(set(self.group.hosts)) != self.group.size:
            raise ValueError("a host can be in a group only once")
        least = self.least_bytes(self.group.size)
        if self.terms.size_bytes < least:
            raise ValueError(f"{self.kind} over {self.group.size} ranks needs at least {least} bytes")

    @staticmethod
    def least_bytes(ranks: int) -> int:
        """The smallest valid size for this number of ranks."""
        return 1

    @property
    def data_bytes(self) -> int:
        """The part of each rank's data that it takes."""
        return self.terms.size_bytes

    @property
    @abstractmethod
    def chunk_bytes(self) -> int:
        """Size of the longest chunk."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """Chunks that a member keeps from one other member."""

    @property
    @abstractmethod
    def sent_bytes(self) -> int:
        """The most bytes that a member sends in a step."""

    @abstractmethod
    def hops(self) -> Iterator[Hop]:
        """The sending pairs."""

    @abstractmethod
    def operations(self, member: int, step: int) -> Iterator[JsonOperation]:
        """The operations of member number `member` in step `step`; slots alternate with even and odd steps at most."""

    @abstractmethod
    def clean_ns(self, shape: Shape) -> int:
        """Duration of a step without disturbance."""

    def earliest_ns(self, shape: Shape) -> float:
        """From the moment at which its last member begins a step until the last member ends it: never sooner, however
        the step goes. A step that is faster is the fault of the fabric (docs/results.md). 0 where nothing is known."""
        return 0.0

    def busy_ns(self, shape: Shape) -> float:
        """How long a member's ports are busy in a step."""
        return self.wire_ns(shape, self.sent_bytes)

    def traffic(self) -> Iterator[tuple[int, int, float]]:
        """Sender, receiver and bytes of each sending pair in a step, by host number: a member is taken to send as much
        as any does, the same to each of its receivers."""
        hops = [tuple(self.group.hosts[member % self.group.size] for member in hop) for hop in self.hops()]
        receivers = Counter(src for src, _ in hops)
        each = self.sent_bytes / max(receivers.values(), default=1)
        return ((src, dst, each) for src, dst in hops)

    @property
    def region_bytes(self) -> int:
        """Memory that the receiver registers for each QP."""
        return self.slots * self._lane_bytes

    def qps(self) -> Iterator[QpSpec]:
        """The QPs between its members."""
        for hop in self.hops():
            src, dst = (self.group.hosts[member % self.group.size] for member in hop)
            for lane in range(self.terms.qps):
                yield QpSpec(self._qp(hop, lane), src, dst, self.region_bytes)

    # For those who write `clean_ns`: a chunk is cut into messages on each QP.

    def transfer_ns(self, shape: Shape, size_bytes: int, hop: Hop | None = None) -> int:
        """From the first write of a chunk to its arrival at the other end of a hop (None: of the longest way)."""
        ends = [self.group.hosts[member % self.group.size] for member in hop or ()]
        known = ends and max(ends) < shape.family.hosts
        links = most_links_between(shape, *ends) if known else None
        return transfer_ns(shape, size_bytes, self._longest_message, links)

    def wire_ns(self, shape: Shape, size_bytes: int) -> float:
        """How long a member's ports are busy with a chunk."""
        return wire_ns(shape, size_bytes, self._longest_message)

    @property
    def _longest_message(self) -> int:
        return max(1, min(self.terms.message_bytes, self._lane_bytes))

    # For those who write `earliest_ns`.

    def chunk_ns(self, shape: Shape, hop: Hop, size_bytes: int) -> float:
        """A chunk over a hop, from the first write until it is there: never sooner."""
        return earliest_ns(shape, self._messages(size_bytes), self.links(shape, hop))

    def links(self, shape: Shape, hop: Hop) -> float:
        """Links on the way of a hop, in links at the port rate."""
        return links_between(shape, *(self.group.hosts[member % self.group.size] for member in hop))

    def _messages(self, size_bytes: int) -> list[int]:
        """Sizes of the writes of a chunk, over all QPs."""
        most = self.terms.message_bytes
        lanes = [part(size_bytes, self.terms.qps, lane).length for lane in range(self.terms.qps)]
        return [min(most, length - at) for length in lanes for at in range(0, length, most)]

    # For those who write `operations`: what a member does with a part of its data, over all QPs of a hop.

    def put(self, hop: Hop, chunk: Part, slot: int, step: int, tag: int) -> Iterator[JsonOperation]:
        """Write a chunk of the rank's own data."""
        for qp, own in self._lanes(hop, chunk):
            at = self.place + chunk.offset + own.offset
            yield ["put", qp, step, at, own.length, slot * self._lane_bytes, self.terms.message_bytes, tag]

    def forward(
        self, came: Hop, hop: Hop, chunk: Part, slots: tuple[int, int], step: int, tag: int
    ) -> Iterator[JsonOperation]:
        """Forward a chunk from the slot it arrived in; `slots`: here, and at the receiver."""
        source, target = (slot * self._lane_bytes for slot in slots)
        for (qp, own), (origin, _) in zip(self._lanes(hop, chunk), self._lanes(came, chunk), strict=True):
            yield ["forward", qp, step, origin, source, own.length, target, self.terms.message_bytes, tag]

    def wait(self, hop: Hop, chunk: Part, step: int, tag: int) -> Iterator[JsonOperation]:
        """Wait for a chunk."""
        for qp, _ in self._lanes(hop, chunk):
            yield ["wait", qp, step, tag]

    def add(self, hop: Hop, chunk: Part, slot: int, step: int) -> Iterator[JsonOperation]:
        """XOR the rank's own data onto a received chunk."""
        for qp, own in self._lanes(hop, chunk):
            at = self.place + chunk.offset + own.offset
            yield ["xor", qp, slot * self._lane_bytes, own.length, step, at]

    def check(self, hop: Hop, chunk: Part, slot: int, step: int, ranks: tuple[int, ...]) -> Iterator[JsonOperation]:
        """Check that a received chunk is the sum of these ranks' data."""
        for qp, own in self._lanes(hop, chunk):
            at = self.place + chunk.offset + own.offset
            yield ["check", qp, slot * self._lane_bytes, own.length, step, at, list(ranks)]

    def drain(self, hop: Hop) -> Iterator[JsonOperation]:
        """Wait until all sent data are acknowledged."""
        for lane in range(self.terms.qps):
            yield ["drain", self._qp(hop, lane)]

    def signal(self, hop: Hop, step: int) -> JsonOperation:
        """Tell the sender of a hop, in the reverse direction of its QP, that its slots are free."""
        return ["signal", self._qp(hop, 0), step, 0]

    def wait_for_signal(self, hop: Hop, step: int) -> JsonOperation:
        """Wait for that signal from the receiver of a hop."""
        return ["wait", self._qp(hop, 0), step, 0]

    def _lanes(self, hop: Hop, chunk: Part) -> Iterator[tuple[str, Part]]:
        for lane in range(self.terms.qps):
            own = part(chunk.length, self.terms.qps, lane)
            if own.length:
                yield self._qp(hop, lane), own

    @property
    def _lane_bytes(self) -> int:
        return -(-self.chunk_bytes // self.terms.qps)

    def _qp(self, hop: Hop, lane: int) -> str:
        hosts, size = self.group.hosts, len(self.group.hosts)  # asked for each operation of each rank
        return f"{hosts[hop.src % size]}>{hosts[hop.dst % size]}/{self.name or self.kind}/{lane}"
