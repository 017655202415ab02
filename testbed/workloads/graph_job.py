"""A graph of operations as a job of steps: each step is the whole graph once. Pure.

A rank's operations are laid out in branches of one `together`: chains of operations that follow each other anyway.
Dependencies between chains are marks. Every message has bytes of its own in the receiver's region and an immediate of
its own, so messages of a pair may come in any order. Nothing is written there again before the next step, and that
begins only when the receiver has said, by an empty message, that it has checked all bytes. With one step nobody says
anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from mrc_testbed.hosts.blocks import PERIOD
from mrc_testbed.hosts.operations import TAGS
from mrc_testbed.testbed.workloads.collective import MESSAGE_BYTES
from mrc_testbed.testbed.workloads.estimate import answer_ns, transfer_ns, wire_ns
from mrc_testbed.testbed.workloads.graph import COMPUTE, RECV, SEND, Graph, GraphNode, Ordered
from mrc_testbed.testbed.workloads.job import JobPlan, JsonOperation, QpSpec
from mrc_testbed.testbed.workloads.steps import StepJob
from mrc_testbed.topos.shape import Shape

_SIGNAL = 0
"""The tag by which a receiver says that it has checked all; messages have the others."""
_MESSAGES_A_QP = TAGS - 1


class _Message(NamedTuple):
    """Where a message goes: its QP, its tag there, and its bytes in the region and in the sender's data."""

    qp: str
    tag: int
    offset: int


@dataclass(frozen=True)
class GraphJob(StepJob):
    """`graph` has as many ranks as the job has hosts; its computations take `stretch` times as long."""

    graph: Graph = Graph(0, ())  # noqa: RUF009, it cannot change
    stretch: float = 1.0

    @property
    def _ordered(self) -> Ordered:
        return self.graph.ordered

    @cached_property
    def _messages(self) -> tuple[dict[int, _Message], tuple[QpSpec, ...]]:
        """The message of each send, and the QPs: one for each 4095 messages of a pair."""
        found: dict[int, _Message] = {}
        counts: dict[tuple[int, int], int] = defaultdict(int)
        sizes: dict[tuple[int, int, int], int] = defaultdict(int)
        for place, node in enumerate(self.graph.nodes):
            if node.kind == SEND:
                pair = node.rank, node.peer
                lane, number = divmod(counts[pair], _MESSAGES_A_QP)
                counts[pair] += 1
                found[place] = _Message(self._qp(*pair, lane), number + 1, sizes[*pair, lane])
                sizes[*pair, lane] += node.amount
        qps = (
            QpSpec(self._qp(src, dst, lane), self.hosts[src], self.hosts[dst], max(size, 1))
            for (src, dst, lane), size in sizes.items()
        )
        return found, tuple(qps)

    def _qp(self, src: int, dst: int, lane: int) -> str:
        return f"{self.hosts[src]}>{self.hosts[dst]}/graph/{lane}"

    def qps(self) -> Iterator[QpSpec]:
        """The QPs between its ranks."""
        yield from self._messages[1]

    @property
    def memory_bytes(self) -> int:
        """All messages of a step."""
        longest = max((node.amount for node in self.graph.nodes if node.kind == SEND), default=0)
        prepared = min(longest, MESSAGE_BYTES) + PERIOD
        return sum(qp.region_bytes for qp in self.qps()) + len(self.hosts) * prepared

    @property
    def operations(self) -> int:
        """At most: three of a node, and a mark and its wait for each dependency."""
        return sum(3 + 2 * len(node.after) for node in self.graph.nodes)

    def _program(self, rank: int) -> list[JsonOperation]:
        step = self._step(rank, 0)
        return step if self.total_steps == 1 else [["repeat", self.total_steps, 1, step]]

    def _step(self, rank: int, step: int) -> list[JsonOperation]:
        own = rank - self.first_rank
        host = self.hosts[own]
        out = [qp.id for qp in self.qps() if qp.src == host]
        came = [qp.id for qp in self.qps() if qp.dst == host]
        end: list[JsonOperation] = []
        if self.total_steps > 1:
            end += [["signal", qp, step, _SIGNAL] for qp in came]
            end += [["wait", qp, step, _SIGNAL] for qp in out]
        end += [["drain", qp] for qp in out]
        return [["begin", step], ["together", *self._branches(own, step)], *end, ["end", step]]

    def _branches(self, rank: int, step: int) -> list[list[JsonOperation]]:
        """The chains of a rank, with marks where one waits for another."""
        chains = self._chains[rank]
        chain_of = {place: number for number, chain in enumerate(chains) for place in chain}
        awaited = {
            one
            for number, chain in enumerate(chains)
            for place in chain
            for one in self._needed(place)
            if chain_of[one] != number
        }
        return [self._branch(chain, awaited, step) for chain in chains]

    def _branch(self, chain: list[int], awaited: set[int], step: int) -> list[JsonOperation]:
        written: list[JsonOperation] = []
        known: set[int] = set()
        for place in chain:
            for one in self._needed(place):
                if one not in known:
                    written.append(["until", one])
                    known.add(one)
            written += self._of_node(place, step)
            known.add(place)
            if place in awaited:
                written.append(["mark", place])
        return written

    def _needed(self, place: int) -> tuple[int, ...]:
        """Operations of its rank that it waits for."""
        behind = self._ordered.behind.get(place)
        after = self.graph.nodes[place].after
        return after if behind is None or behind in after else (*after, behind)

    def _of_node(self, place: int, step: int) -> list[JsonOperation]:
        node = self.graph.nodes[place]
        if node.kind == COMPUTE:
            return [["compute", self._ns(node)]] if node.amount else []
        messages, order = self._messages[0], self._ordered
        qp, tag, offset = messages[place if node.kind == SEND else order.send_of[place]]
        if node.kind == SEND:
            put = ["put", qp, step, offset, node.amount, offset, MESSAGE_BYTES, tag]
            sent: JsonOperation = put if node.amount else ["signal", qp, step, tag]
            return [sent, ["drain", qp]] if place in self._ends_matter else [sent]
        sender = [self.first_rank + node.peer]
        check = [["check", qp, offset, node.amount, step, offset, sender]] if node.amount else []
        return [["take", qp, step, tag], *check]

    def _ns(self, node: GraphNode) -> int:
        return round(node.amount * self.stretch)

    @cached_property
    def _ends_matter(self) -> frozenset[int]:
        """Operations that another one waits for."""
        return frozenset(one for node in self.graph.nodes for one in node.after)

    @cached_property
    def _chains(self) -> list[list[list[int]]]:
        """The chains of each rank."""
        found = [_Chains() for _ in range(self.graph.ranks)]
        for place in self._ordered.order:
            node = self.graph.nodes[place]
            found[node.rank].add(place, node, self._needed(place), place in self._ends_matter)
        return [one.chains for one in found]

    def step_ns(self, shape: Shape) -> int:
        """Clean duration of a step: each host's ports send, and take in, one message after another, in the order of
        the graph."""
        if shape not in self._clean_ns:
            self._clean_ns[shape] = self._reckoned_ns(shape)
        return self._clean_ns[shape]

    @cached_property
    def _clean_ns(self) -> dict[Shape, int]:
        return {}

    def _reckoned_ns(self, shape: Shape) -> int:
        ends: list[float] = [0.0] * len(self.graph.nodes)
        sending, taking = [0.0] * self.graph.ranks, [0.0] * self.graph.ranks
        arrivals: dict[int, float] = {}
        answer = answer_ns(shape)
        times = cache(lambda amount: (wire_ns(shape, amount), transfer_ns(shape, max(amount, 1))))
        for place in self._ordered.order:
            node = self.graph.nodes[place]
            ready = max((ends[one] for one in self._needed(place)), default=0.0)
            if node.kind == COMPUTE:
                ends[place] = ready + self._ns(node)
            elif node.kind == SEND:
                busy, transfer = times(node.amount)
                begin = max(ready, sending[node.rank])
                sending[node.rank] = begin + busy
                arrivals[place] = max(begin, taking[node.peer]) + transfer
                taking[node.peer] = max(begin, taking[node.peer]) + busy
                ends[place] = arrivals[place] + answer
            elif node.kind == RECV:
                ends[place] = max(ready, arrivals[self._ordered.send_of[place]])
        return round(max(ends, default=0.0)) + (answer if self.total_steps > 1 else 0)

    def most_busy(self, shape: Shape) -> float:
        """The share of line rate at which the busiest rank sends in a step."""
        sent = [0] * self.graph.ranks
        for node in self.graph.nodes:
            if node.kind == SEND:
                sent[node.rank] += node.amount
        step = self.step_ns(shape)
        return min(1.0, wire_ns(shape, max(sent)) / step) if step and self.graph.ranks else 0.0

    def earliest_step_ns(self, shape: Shape) -> float:
        """Nothing known: a rank that begins last may have nothing to do."""
        return 0.0

    def plan(self) -> JobPlan:
        """The QPs of the job, and the program of each rank."""
        programs = {host: [self._program(rank)] for rank, host in enumerate(self.hosts, self.first_rank)}
        return JobPlan(tuple(self.qps()), programs, self.hosts)


class _Chains:
    """Operations of a rank in chains, each operation behind what it waits for.

    A send never waits, so sends that wait for the same go into one chain; so do all recvs that nobody waits for and
    that wait for nothing themselves.
    """

    def __init__(self) -> None:
        self.chains: list[list[int]] = []
        self._ending_in: dict[int, list[int]] = {}
        self._sends: dict[tuple[int, ...], list[int]] = {}
        self._sink: list[int] | None = None

    def add(self, place: int, node: GraphNode, needed: tuple[int, ...], awaited: bool) -> None:
        """The next operation, in an order that is possible."""
        if node.kind == RECV and not needed and not awaited:
            if self._sink is None:
                self._sink = self._new()
            self._sink.append(place)
            return
        if node.kind == SEND and not awaited and needed in self._sends:
            self._sends[needed].append(place)
            return
        above = next((one for one in needed if one in self._ending_in), None)
        chain = self._new() if above is None else self._ending_in.pop(above)
        chain.append(place)
        if node.kind == SEND and not awaited:
            self._sends[needed] = chain
        else:
            self._ending_in[place] = chain

    def _new(self) -> list[int]:
        self.chains.append([])
        return self.chains[-1]


@lru_cache(maxsize=8)
def graph_job(
    hosts: tuple[int, ...], steps: int, warm_up: int, first_rank: int, graph: Graph, stretch: float
) -> GraphJob:
    """The job of a graph: the same one for the same terms, since it is asked for often and takes long to lay out."""
    return GraphJob(hosts, steps, (), warm_up, (), first_rank, graph, stretch)
