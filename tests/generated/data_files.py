"""Files that a scenario names, with the numbers of its sketch: flows, distributions of sizes, graphs."""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.workloads.graph import COMPUTE, RECV, SEND, Graph, GraphNode, graph_lines
from tests.generated.sketch import MS, PACKETS, Sketch

_S = 10**9
_MOST_OPERATIONS = 12


def flows_file(sketch: Sketch, pairs: Sequence[tuple[str, str]], stretch: float) -> str:
    """Flows between these hosts, several a pair, some at once; a few have names. Times are before `stretch`."""
    rows = []
    names = ["", "", sketch.name("kind")]
    for src, dst in pairs:
        for _ in range(sketch.dice.randint(1, 5)):
            begin_s = sketch.one([0, sketch.dice.randint(0, sketch.least_for_ns) / _S / stretch])
            rows.append(f"{begin_s:.9f},{src},{dst},{_flow_bytes(sketch, len(pairs))},{sketch.one(names)}")
    sketch.dice.shuffle(rows)
    return sketch.file("csv", ["start_s,src,dst,bytes,name", "# drawn", *rows])


def _flow_bytes(sketch: Sketch, pairs: int) -> int:
    """From a byte to what the packets of a run allow."""
    most = max(sketch.payload, PACKETS * sketch.payload // (3 * pairs))
    return sketch.one([1, sketch.payload, sketch.payload + 1, sketch.dice.randint(1, most)])


def sizes_file(sketch: Sketch) -> str:
    """A distribution of two or three pieces, one of them at times without a width."""
    small = sketch.dice.randint(0, sketch.payload)
    large = sketch.dice.randint(small + 1, small + 20 * sketch.payload)
    first = sketch.one([0, small])
    return sketch.file("cdf", [f"{first} 0", f"{small} {sketch.dice.randint(1, 99)}.5", f"{large} 100"])


def graph_file(sketch: Sketch, ranks: int, stretch: float) -> str:
    """Operations in an order that is possible: each needs some of its rank that come before it."""
    nodes: list[GraphNode] = []
    for _ in range(sketch.dice.randint(1, _MOST_OPERATIONS)):
        if sketch.often(0.4):
            length_ns = int(sketch.dice.uniform(0, 10 * MS) / stretch)
            _append(sketch, nodes, GraphNode(COMPUTE, sketch.dice.randrange(ranks), length_ns, -1, sketch.one([-1, 0])))
        else:
            _message(sketch, nodes, ranks)
    if all(node.kind == COMPUTE for node in nodes):
        _message(sketch, nodes, ranks)
    return sketch.file("jsonl", list(graph_lines(Graph(ranks, tuple(nodes)))))


def _message(sketch: Sketch, nodes: list[GraphNode], ranks: int) -> None:
    src, dst = sketch.dice.sample(range(ranks), 2)
    size, tag = sketch.one([0, 1, sketch.job_bytes() // 2]), sketch.one([0, 0, 7])
    _append(sketch, nodes, GraphNode(SEND, src, size, dst, tag))
    _append(sketch, nodes, GraphNode(RECV, dst, size, src, tag))


def _append(sketch: Sketch, nodes: list[GraphNode], node: GraphNode) -> None:
    before = [place for place, one in enumerate(nodes) if one.rank == node.rank]
    after = sketch.dice.sample(before, sketch.dice.randint(0, min(2, len(before))))
    nodes.append(node._replace(after=tuple(sorted(after))))
