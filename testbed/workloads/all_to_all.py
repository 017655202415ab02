"""All-to-all: every rank sends a different part of its data to every other rank, all at once. Pure.

The data of a rank are cut into N chunks, as nccl-tests does; chunk d goes to rank d, its own stays. Each rank begins
with the rank after it, which spreads the load over the receivers. Where the group has nodes, chunks for ranks of the
same node stay in it: they cross no network, so they are neither sent nor waited for.

Two banks of one slot per sender are enough: to begin step s + 2 a peer must have finished step s + 1, so it had this
rank's chunk of step s + 1; and before this rank sent that, it had checked everything of step s, whose bank is reused.
Nothing is forwarded, so nothing is ever resent from a slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mrc_testbed.testbed.workloads.collective import Collective, Hop, Part, part
from mrc_testbed.testbed.workloads.estimate import answer_ns, earliest_ns
from mrc_testbed.testbed.workloads.job import JsonOperation
from mrc_testbed.topos.shape import Shape

BANKS = 2


class AllToAll(Collective):
    """`size_bytes` of each rank, an Nth of it for each rank."""

    kind: ClassVar[str] = "all-to-all"
    formula: ClassVar[str] = "to((N-1) size/N) + to(1)"
    __slots__ = ()

    @staticmethod
    def least_bytes(ranks: int) -> int:
        """A byte for each rank."""
        return ranks

    @property
    def chunk_bytes(self) -> int:
        """1/N of the data."""
        return -(-self.terms.size_bytes // self.group.size)

    @property
    def slots(self) -> int:
        """Two banks of one."""
        return BANKS

    @property
    def sent_bytes(self) -> int:
        """A chunk for every other rank that is not of the same node."""
        return len(self._others(0)) * self.chunk_bytes

    def hops(self) -> Iterator[Hop]:
        """From every rank to every other, but for those of its node."""
        return (Hop(src, dst) for src in range(self.group.size) for dst in sorted(self._others(src)))

    def operations(self, member: int, step: int) -> Iterator[JsonOperation]:
        """Send all chunks, receive all chunks."""
        slot, others = step % BANKS, self._others(member)
        for other in others:
            yield from self.put(Hop(member, other), self._chunk(other), slot, step, 0)
        for other in reversed(others):
            came = Hop(other, member)
            yield from self.wait(came, self._chunk(member), step, 0)
            yield from self.check(came, self._chunk(member), slot, step, (self.group.ranks[other],))
        for other in others:
            yield from self.drain(Hop(member, other))

    def clean_ns(self, shape: Shape) -> int:
        """All chunks in sequence, and the last acknowledgement."""
        return self.transfer_ns(shape, self.sent_bytes) + answer_ns(shape)

    def earliest_ns(self, shape: Shape) -> float:
        """All that the last member to begin sends; its last packet may go to the nearest one."""
        least_bytes = self.terms.size_bytes // self.group.size
        links = min(self.links(shape, hop) for hop in self.hops())
        return earliest_ns(shape, self._messages(least_bytes) * len(self._others(0)), links)

    def _others(self, member: int) -> list[int]:
        """To whom a member sends, the one after it first."""
        size, nodes = self.group.size, self.group.nodes
        others = [(member + distance) % size for distance in range(1, size)]
        return [other for other in others if nodes[other] != nodes[member]] if nodes else others

    def _chunk(self, index: int) -> Part:
        return part(self.terms.size_bytes, self.group.size, index)
