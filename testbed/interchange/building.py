"""A graph that is put together in any order, as files of others have their operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from mrc_testbed.testbed.interchange.bounds import bounds_of
from mrc_testbed.testbed.interchange.text import FormatError
from mrc_testbed.testbed.workloads.graph import (
    COMPUTE,
    NO_STREAM,
    RECV,
    SEND,
    Graph,
    GraphError,
    GraphNode,
    possible_order,
)

MOST_TAG = (1 << 40) - 1
"""Of files; above are those of messages that are numbered one by one."""
_MANY_WAITS = 8
"""More than these become one operation without duration, which others wait for."""


class GraphBuilder:
    """Collects operations; `after` of each may still grow. `word`: how the file counts its places, such as `line`;
    `size`: bytes of all that is read, which bound what it becomes."""

    def __init__(self, file: Path, size: int, word: str = "line") -> None:
        self._file, self._word, self._bounds = file, word, bounds_of(size)
        self._left = self._bounds.waits
        self._nodes: list[GraphNode] = []
        self._after: list[list[int]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, kind: str, rank: int, amount: int, peer: int = -1, mark: int | None = None, place: int = 0) -> int:
        """A new operation, and its number. `mark`: a message's tag or a computation's stream. Raises FormatError."""
        if len(self._nodes) == self._bounds.operations:
            raise self._too_much(place, f"{self._bounds.operations} operations")
        usual = NO_STREAM if kind == COMPUTE else 0
        self._nodes.append(GraphNode(kind, rank, amount, peer, usual if mark is None else mark, (), place))
        self._after.append([])
        return len(self._nodes) - 1

    def meet(self, number: int, peer: int, mark: int) -> None:
        """A recv that was added for any rank or tag is one from this rank, with this tag."""
        self._nodes[number] = self._nodes[number]._replace(peer=peer, mark=mark)

    def wait(self, number: int, *others: int) -> None:
        """An operation begins only when these of its rank have ended."""
        self._left -= len(others)
        if self._left < 0:
            raise self._too_much(self._nodes[number].line, f"{self._bounds.waits} waits of operations for others")
        self._after[number] += others

    def _too_much(self, place: int, what: str) -> FormatError:
        return FormatError(self._file, self.said(place), f"more than {what}, too many for what this file has")

    def gate(self, number: int) -> tuple[int, ...]:
        """Operations that have ended when one may begin; many are joined by one that takes no time."""
        waits = self._after[number]
        if len(waits) > _MANY_WAITS:
            one = self._nodes[number]
            waits = [self.add(COMPUTE, one.rank, 0, place=one.line)]
            self.wait(waits[0], *self._after[number])
            self._after[number] = waits
        return tuple(waits)

    def rank_of(self, number: int) -> int:
        """The rank of an operation."""
        return self._nodes[number].rank

    def line_of(self, number: int) -> int:
        """The place of an operation in the file."""
        return self._nodes[number].line

    def said(self, place: int) -> str:
        """A place for people; empty for none."""
        return f"{self._word} {place}" if place else ""

    def graph(self, ranks: int) -> Graph:
        """The whole. Raises FormatError where messages do not match, or operations wait for each other."""
        order = self._order()
        self._number_messages(order)
        place_of = {number: place for place, number in enumerate(order)}
        nodes = [
            self._nodes[number]._replace(after=tuple(sorted({place_of[one] for one in self._after[number]})))
            for number in place_of
        ]
        graph = Graph(ranks, tuple(nodes), self._word)
        try:
            _ = graph.ordered
        except GraphError as error:
            raise FormatError(self._file, self.said(error.line), str(error)) from None
        return graph

    def _order(self) -> list[int]:
        """All operations, each behind those of its rank that it waits for."""
        order, lacking = possible_order([set(after) for after in self._after])
        if len(order) < len(lacking):
            node = self._nodes[next(number for number, count in enumerate(lacking) if count)]
            raise FormatError(self._file, self.said(node.line), f"an operation of rank {node.rank} waits for itself")
        return order

    def _number_messages(self, order: Sequence[int]) -> None:
        """Messages of one pair and tag belong together in the order in which they were added. Where dependencies put
        them into another one, each gets a tag of its own."""
        place_of = {number: place for place, number in enumerate(order)}
        found: dict[tuple[int, int, int], dict[str, list[int]]] = defaultdict(lambda: {SEND: [], RECV: []})
        for number, node in enumerate(self._nodes):
            if node.kind != COMPUTE:
                ends = (node.rank, node.peer) if node.kind == SEND else (node.peer, node.rank)
                found[*ends, node.mark][node.kind].append(number)
        fresh = MOST_TAG + 1
        for of_kind in found.values():
            if all(place_of[one] < place_of[two] for numbers in of_kind.values() for one, two in pairwise(numbers)):
                continue
            for numbers in of_kind.values():
                for turn, number in enumerate(numbers):
                    self._nodes[number] = self._nodes[number]._replace(mark=fresh + turn)
            fresh += max(map(len, of_kind.values()))
