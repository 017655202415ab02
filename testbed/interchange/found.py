"""What a file of another tool holds, in our terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mrc_testbed.testbed.interchange.fat_tree import FatTree
from mrc_testbed.testbed.workloads.graph import Graph

PS_PER_S = 10**12
MOST_FLOWS = 200_000


class FlowLine(NamedTuple):
    """One flow: its begin in ps after that of the workload, sender and receiver by number, and bytes. `name` empty:
    none."""

    start_ps: int
    src: int
    dst: int
    bytes: int
    name: str = ""


class SizePoint(NamedTuple):
    """A point of a distribution: `percent` of all flows have at most this size."""

    bytes: float
    percent: float


@dataclass(frozen=True)
class Found:
    """Of `flows`, `graph` and `sizes` one is there. `kind`: the format. `nodes`: how many the file knows, 0 where it
    knows none. `names`: of nodes that have one of ours, by number. `lost`: what has no counterpart, a sentence each.
    `fat_tree`: the fabric, where the file has failed links of one."""

    kind: str
    nodes: int
    flows: tuple[FlowLine, ...] = ()
    graph: Graph | None = None
    sizes: tuple[SizePoint, ...] = ()
    names: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    fat_tree: FatTree | None = None

    @property
    def used(self) -> tuple[int, ...]:
        """The nodes that do anything, by number."""
        if self.graph is not None:
            return tuple(sorted({node.rank for node in self.graph.nodes}))
        return tuple(sorted({end for flow in self.flows for end in (flow.src, flow.dst)}))

    @property
    def total_bytes(self) -> int:
        """Of all flows or messages."""
        if self.graph is not None:
            return sum(node.amount for node in self.graph.nodes if node.kind == "send")
        return sum(flow.bytes for flow in self.flows)


class LeftOut:
    """Counts what is left out; each kind becomes one sentence."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def note(self, what: str, count: int = 1) -> None:
        """`what`: a sentence that begins after the count, such as `priorities have no counterpart`."""
        self._counts[what] += count

    def lines(self, more: Iterable[str] = ()) -> tuple[str, ...]:
        """All of them, the first first."""
        return (*(f"{count} x {what}" for what, count in self._counts.items()), *more)
