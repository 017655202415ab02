"""Collectives as sends and recvs of a graph. A ring passes chunks to the next member, a tree doubles those who have the
data in each round; what nobody has computed is not computed here either."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.interchange.building import GraphBuilder
from mrc_testbed.testbed.workloads.collective import part
from mrc_testbed.testbed.workloads.graph import COMPUTE, RECV, SEND

ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL = range(7)
REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, BARRIER = 7, 8, 9
NAMES = (
    *("all-reduce", "reduce", "all-gather", "gather", "scatter", "broadcast", "all-to-all"),
    *("reduce-scatter", "reduce-scatter", "barrier"),
)
_ROUNDS = {ALL_REDUCE: 2, ALL_GATHER: 1, REDUCE_SCATTER: 1, REDUCE_SCATTER_BLOCK: 1, BARRIER: 2}
"""Times that a chunk goes around the ring, but for its last hop."""


class CollectiveGraph:
    """One collective of a group. `ranks`: its members in order; `begins`: an operation of each, behind which it may
    send; `tag`: of all its messages."""

    def __init__(self, builder: GraphBuilder, ranks: Sequence[int], begins: Sequence[int], tag: int) -> None:
        self._builder, self._ranks, self._tag = builder, ranks, tag
        self._last = list(begins)
        self._ends: list[list[int]] = [[begin] for begin in begins]

    def laid_out(self, kind: int, size: int, root: int = 0) -> list[int]:
        """All its messages; `size` in bytes of all members' data, of a broadcast or reduce that of one. The operation
        with which each member is done."""
        if kind in _ROUNDS:
            self._ring(_ROUNDS[kind], len(self._ranks) if kind == BARRIER else size)
        elif kind == ALL_TO_ALL:
            self._direct(size, [(a, b) for a in self._members for b in self._members if a != b])
        elif kind in (BROADCAST, REDUCE):
            self._tree(size, root, up=kind == REDUCE)
        else:
            others = [one for one in self._members if one != root]
            self._direct(size, [(root, one) if kind == SCATTER else (one, root) for one in others])
        return [self._end(member) for member in self._members]

    @property
    def _members(self) -> range:
        return range(len(self._ranks))

    def _ring(self, rounds: int, size: int) -> None:
        """Each member sends on, in each phase, the chunk that it got in the one before."""
        count = len(self._ranks)
        for phase in range(rounds * (count - 1)):
            arrived = [
                self._message(member, (member + 1) % count, part(size, count, (member - phase) % count).length)
                for member in self._members
            ]
            for member, recv in enumerate(arrived):
                self._last[(member + 1) % count] = recv

    def _direct(self, size: int, pairs: Sequence[tuple[int, int]]) -> None:
        for src, dst in pairs:
            self._ends[dst].append(self._message(src, dst, part(size, len(self._ranks), dst).length))

    def _tree(self, size: int, root: int, up: bool) -> None:
        """In round k the first 2^k members from the root on send to as many others, or the same backwards."""
        count = len(self._ranks)
        rounds = [1 << k for k in range((count - 1).bit_length())]
        for reach in reversed(rounds) if up else rounds:
            for near in range(min(reach, count - reach)):
                ends = [(root + near) % count, (root + near + reach) % count]
                src, dst = reversed(ends) if up else ends
                self._last[dst] = self._message(src, dst, size)

    def _message(self, src: int, dst: int, size: int) -> int:
        """A message behind what its sender has; the recv, behind what its receiver has."""
        send = self._builder.add(SEND, self._ranks[src], size, self._ranks[dst], self._tag)
        recv = self._builder.add(RECV, self._ranks[dst], size, self._ranks[src], self._tag)
        self._builder.wait(send, self._last[src])
        self._builder.wait(recv, self._last[dst])
        return recv

    def _end(self, member: int) -> int:
        end = self._builder.add(COMPUTE, self._ranks[member], 0)
        self._builder.wait(end, self._last[member], *self._ends[member])
        return end
