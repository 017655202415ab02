"""Rings: all-reduce, which is reduce-scatter and then all-gather, N - 1 phases each; and each of the two alone. Pure.

The vector is cut into N chunks. In every phase each rank writes one chunk, with immediate, into the region of its right
neighbour and receives one from its left neighbour. In the first N - 1 phases it XORs its own chunk onto the received
one and passes that on; then rank r holds chunk r + 1 complete, and in the last N - 1 phases the complete chunks travel
round unchanged. Every complete chunk is checked in its slot. A reduce-scatter ends after the first half. An all-gather
is the second half, in which rank r begins with chunk r of its own data.

Every phase has its own slot in the region, in two banks for even and odd steps. One bank is not enough: chunks are
forwarded from the slot they arrived in, and the left neighbour can be a step ahead and overwrite a slot whose
forwarding has arrived but is not acknowledged yet, so a retransmission would send other bytes. Two are enough: to begin
step s + 2 the left neighbour must have finished step s + 1, whose result holds a chunk of every rank, so this rank had
begun step s + 1, and before that it had checked, drained and ended step s, whose bank is reused. The result of either
half holds something of every rank, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import ClassVar

from mrc_testbed.testbed.workloads.collective import Collective, Hop, Part, part
from mrc_testbed.testbed.workloads.estimate import answer_ns
from mrc_testbed.testbed.workloads.job import JsonOperation
from mrc_testbed.topos.shape import Shape

BANKS = 2


class Ring(Collective):
    """An all-reduce of `size_bytes` over the ranks of a group in their order."""

    kind: ClassVar[str] = "allreduce"
    formula: ClassVar[str] = "2(N-1) to(size/N) + to(1)"
    reduces: ClassVar[bool] = True
    """Chunks of all ranks become one."""
    gathers: ClassVar[bool] = True
    """Complete chunks reach all ranks."""
    __slots__ = ()

    @staticmethod
    def least_bytes(ranks: int) -> int:
        """A byte of each chunk."""
        return ranks

    @property
    def phases(self) -> int:
        """Writes of each rank in a step: N - 1 in each half."""
        return (self.reduces + self.gathers) * (self.group.size - 1)

    @property
    def chunk_bytes(self) -> int:
        """1/N of the vector."""
        return -(-self.terms.size_bytes // self.group.size)

    @property
    def slots(self) -> int:
        """Two banks of one a phase."""
        return BANKS * self.phases

    @property
    def sent_bytes(self) -> int:
        """A chunk a phase."""
        return self.phases * self.chunk_bytes

    def hops(self) -> Iterator[Hop]:
        """From each rank to the next."""
        return (Hop(member, member + 1) for member in range(self.group.size))

    def operations(self, member: int, step: int) -> Iterator[JsonOperation]:
        """A chunk is checked after the next one was sent, to keep the ring busy."""
        came = Hop(member - 1, member)
        for phase in range(self.phases):
            yield from self._send(member, step, phase)
            yield from self._look(member, step, phase - 1)
            arriving = self._chunk(member - phase - 1)
            yield from self.wait(came, arriving, step, phase)
            if self.reduces and phase < self.group.size - 1:
                yield from self.add(came, arriving, self._slot(step, phase), step)
        yield from self._look(member, step, self.phases - 1)
        yield from self.drain(Hop(member, member + 1))

    def clean_ns(self, shape: Shape) -> int:
        """In each phase all ranks send a chunk at once, and each waits for the incoming one: the chunk with the longest
        hops decides. At the end each waits for the acknowledgement of its last chunk."""
        size = self.group.size
        hops_ns = [self.transfer_ns(shape, self.chunk_bytes, hop) for hop in self.hops()]
        rounds, rest = divmod(self.phases, size)
        sums = list(accumulate(hops_ns * 2, initial=0))
        return rounds * sums[size] + max(sums[at + rest] - sums[at] for at in range(size)) + answer_ns(shape)

    def earliest_ns(self, shape: Shape) -> float:
        """The chunk that the last member to begin puts in first goes round once in each half, but for a hop."""
        least_bytes = self.terms.size_bytes // self.group.size
        hops = [self.chunk_ns(shape, hop, least_bytes) for hop in self.hops()]
        return (self.reduces + self.gathers) * (sum(hops) - max(hops))

    def _send(self, member: int, step: int, phase: int) -> Iterator[JsonOperation]:
        hop, chunk = Hop(member, member + 1), self._chunk(member - phase)
        slot = self._slot(step, phase)
        if phase == 0:
            return self.put(hop, chunk, slot, step, phase)
        return self.forward(Hop(member - 1, member), hop, chunk, (self._slot(step, phase - 1), slot), step, phase)

    def _look(self, member: int, step: int, phase: int) -> Iterator[JsonOperation]:
        first_whole = self.group.size - 2 if self.reduces else 0
        if phase >= first_whole:
            number = (member - phase - 1) % self.group.size
            ranks = self.group.ranks if self.reduces else (self.group.ranks[number],)
            slot = self._slot(step, phase)
            yield from self.check(Hop(member - 1, member), self._chunk(number), slot, step, ranks)

    def _chunk(self, index: int) -> Part:
        return part(self.terms.size_bytes, self.group.size, index % self.group.size)

    def _slot(self, step: int, phase: int) -> int:
        return step % BANKS * self.phases + phase


class ReduceScatter(Ring):
    """A reduce-scatter: of `size_bytes` of each rank, every rank ends with an Nth that holds all of them."""

    kind: ClassVar[str] = "reduce-scatter"
    formula: ClassVar[str] = "(N-1) to(size/N) + to(1)"
    gathers: ClassVar[bool] = False
    __slots__ = ()


class AllGather(Ring):
    """An all-gather: every rank ends with `size_bytes`, an Nth of them from each rank."""

    kind: ClassVar[str] = "all-gather"
    formula: ClassVar[str] = "(N-1) to(size/N) + to(1)"
    reduces: ClassVar[bool] = False
    __slots__ = ()
