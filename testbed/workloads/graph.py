"""A graph of computations and messages between ranks: read from JSON lines, written, matched and put in order. Pure.

The first line of a file is `{"ranks": 2}`. Each other line is one operation with an `id`, its `rank`, and one of

- `"compute_ns": 5000`, optional `"on": 0`: computations of a rank with the same `on` run one after another;
- `"send": 4096, "to": 1`, optional `"tag": 7`: a message of that many bytes; it ends when it is acknowledged;
- `"recv": 4096, "from": 0`, optional `"tag": 7`: ends when the message is there.

`"after": [ids]` names operations of the same rank, of lines above, that must have ended before. The n-th send from one
rank to another with a tag belongs to the n-th recv there with that tag.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, NamedTuple

MAX_NODES = 500_000
"""Operations of a graph."""
MAX_RANKS = 65_536
MAX_LINE_CHARACTERS = 1 << 20
MAX_BYTES = 1 << 40
MAX_NS = 10**15
"""Of one computation: 12 days."""
COMPUTE, SEND, RECV = "compute_ns", "send", "recv"
_PEERS = {SEND: "to", RECV: "from"}
_ON = {COMPUTE: "on", SEND: "tag", RECV: "tag"}
_MOST = {COMPUTE: MAX_NS, SEND: MAX_BYTES, RECV: MAX_BYTES}
NO_STREAM = -1
"""A computation that waits for no other one of its rank."""


class GraphError(ValueError):
    """A graph that cannot be run. `line` of the file, 0 where it is about the whole file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class GraphNode(NamedTuple):
    """One operation. `amount`: ns or bytes; `peer`: the other rank; `mark`: the tag, of a computation its stream;
    `after`: positions among the nodes, all smaller than its own. `line`: where it was read, 0 for nowhere."""

    kind: str
    rank: int
    amount: int
    peer: int = -1
    mark: int = 0
    after: tuple[int, ...] = ()
    line: int = 0


@dataclass(frozen=True, eq=False)
class Graph:
    """The operations of ranks 0 to `ranks` - 1, in the order of the file. `word`: how it counts their places."""

    ranks: int
    nodes: tuple[GraphNode, ...]
    word: str = "line"

    @cached_property
    def ordered(self) -> Ordered:
        """An order in which all operations can be done. Raises GraphError where there is none."""
        return _in_order(self)


def graph_lines(graph: Graph) -> Iterator[str]:
    """The file, line by line without line ends; `read_graph` reads it back."""
    yield json.dumps({"ranks": graph.ranks})
    for number, node in enumerate(graph.nodes):
        found: dict[str, Any] = {"id": number, "rank": node.rank, node.kind: node.amount}
        if node.kind in _PEERS:
            found[_PEERS[node.kind]] = node.peer
        if node.mark != _usual_mark(node.kind):
            found[_ON[node.kind]] = node.mark
        if node.after:
            found["after"] = list(node.after)
        yield json.dumps(found)


def read_graph(lines: Iterable[str]) -> Graph:
    """The graph of a file. Raises GraphError, also where sends and recvs do not match or wait for each other."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first, header = next(numbered, (1, "{}"))
    raw = _object(first, header)
    ranks = _whole(first, raw, "ranks", 1, MAX_RANKS)
    if len(raw) > 1:
        raise GraphError(first, 'the first line is {"ranks": N} and nothing else')
    places: dict[int, int] = {}
    nodes: list[GraphNode] = []
    for number, line in numbered:
        if len(nodes) == MAX_NODES:
            raise GraphError(number, f"more than {MAX_NODES} operations")
        nodes.append(_node(number, _object(number, line), ranks, places, nodes))
    graph = Graph(ranks, tuple(nodes))
    _ = graph.ordered  # raises what is wrong with it
    return graph


def _object(line: int, text: str) -> dict[str, Any]:
    if len(text) > MAX_LINE_CHARACTERS:
        raise GraphError(line, f"has more than {MAX_LINE_CHARACTERS} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise GraphError(line, "is no JSON object") from None
    if not isinstance(found, dict):
        raise GraphError(line, "is no JSON object")
    return found


def _whole(line: int, raw: dict[str, Any], key: str, least: int, most: int, usual: int | None = None) -> int:
    value = raw.get(key, usual)
    if value is None:
        raise GraphError(line, f'lacks "{key}"')
    if type(value) is not int or not least <= value <= most:
        raise GraphError(line, f'"{key}" must be a whole number from {least} to {most}')
    return value


def _node(line: int, raw: dict[str, Any], ranks: int, places: dict[int, int], before: Sequence[GraphNode]) -> GraphNode:
    """The operation of a line; `places` learns its id."""
    kind = _kind(line, raw)
    identity = _whole(line, raw, "id", 0, 2**63)
    if identity in places:
        raise GraphError(line, f"the id {identity} is that of line {before[places[identity]].line}, too")
    rank = _whole(line, raw, "rank", 0, ranks - 1)
    peer = _whole(line, raw, _PEERS[kind], 0, ranks - 1) if kind in _PEERS else -1
    if peer == rank:
        raise GraphError(line, f"rank {rank} sends nothing to itself; leave it out, or compute for that time")
    mark = _whole(line, raw, _ON[kind], NO_STREAM, 2**63, _usual_mark(kind))
    after = _after(line, raw.get("after", []), rank, places, before)
    node = GraphNode(kind, rank, _whole(line, raw, kind, 0, _MOST[kind]), peer, mark, after, line)
    places[identity] = len(before)
    return node


def _usual_mark(kind: str) -> int:
    return NO_STREAM if kind == COMPUTE else 0


def _kind(line: int, raw: dict[str, Any]) -> str:
    kinds = [kind for kind in _ON if kind in raw]
    if len(kinds) != 1:
        raise GraphError(line, f'needs one of "{COMPUTE}", "{SEND}" and "{RECV}"')
    known = {"id", "rank", "after", kinds[0], _ON[kinds[0]], _PEERS.get(kinds[0])}
    if unknown := next((key for key in raw if key not in known), None):
        raise GraphError(line, f'unknown key "{unknown}" of {kinds[0]}')
    return kinds[0]


def _after(line: int, ids: Any, rank: int, places: dict[int, int], before: Sequence[GraphNode]) -> tuple[int, ...]:
    if not isinstance(ids, list):
        raise GraphError(line, '"after" must be a list of ids')
    found = []
    for one in ids:
        place = places.get(one) if type(one) is int else None
        if place is None:
            raise GraphError(line, f'"after" names {one!r}, which is no id of a line above')
        if before[place].rank != rank:
            raise GraphError(line, f'"after" names {one}, an operation of rank {before[place].rank}, not of {rank}')
        found.append(place)
    return tuple(dict.fromkeys(found))


def matched(graph: Graph) -> dict[int, int]:
    """The send of each recv, by positions. Raises GraphError for one without the other, or of other sizes."""
    sends: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    recvs: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for place, node in enumerate(graph.nodes):
        if node.kind == SEND:
            sends[node.rank, node.peer, node.mark].append(place)
        elif node.kind == RECV:
            recvs[node.peer, node.rank, node.mark].append(place)
    found: dict[int, int] = {}
    for key in dict.fromkeys((*sends, *recvs)):
        given, taken = sends[key], recvs[key]
        if len(given) != len(taken):
            raise _unmatched(graph, given, taken)
        for send, recv in zip(given, taken, strict=True):
            if graph.nodes[send].amount != graph.nodes[recv].amount:
                why = f"the recv of {graph.nodes[recv].amount} bytes meets a send of {graph.nodes[send].amount}"
                raise GraphError(graph.nodes[recv].line, f"{why} in {graph.word} {graph.nodes[send].line}")
            found[recv] = send
    return found


def _unmatched(graph: Graph, sends: list[int], recvs: list[int]) -> GraphError:
    here, lacking = (sends, RECV) if len(sends) > len(recvs) else (recvs, SEND)
    node = graph.nodes[here[min(len(sends), len(recvs))]]
    way = f"rank {node.rank} to rank {node.peer}" if node.kind == SEND else f"rank {node.peer} to rank {node.rank}"
    return GraphError(node.line, f"the {node.kind} from {way} with tag {node.mark} has no {lacking}")


class Ordered(NamedTuple):
    """Positions of the nodes, each behind all that it waits for; the send of each recv; and the computation that each
    one waits for because it shares its stream."""

    order: list[int]
    send_of: dict[int, int]
    behind: dict[int, int]


def _in_order(graph: Graph) -> Ordered:
    send_of = matched(graph)
    needs = [
        (*node.after, send_of[place]) if place in send_of else node.after for place, node in enumerate(graph.nodes)
    ]
    order, lacking = possible_order(needs)
    if len(order) < len(graph.nodes):
        raise _circle(graph, needs, lacking)
    return Ordered(order, send_of, _streams(graph, order))


def possible_order(needs: Sequence[Collection[int]]) -> tuple[list[int], list[int]]:
    """The numbers of `needs`, each behind all that it needs and else by size; those in circles, and behind them, are
    left out. And how many of its needs each one still lacks then."""
    followers: dict[int, list[int]] = defaultdict(list)
    for number, needed in enumerate(needs):
        for one in needed:
            followers[one].append(number)
    lacking = [len(needed) for needed in needs]
    ready = [number for number, count in enumerate(lacking) if not count]  # in order, so it is a heap
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for one in followers[order[-1]]:
            lacking[one] -= 1
            if not lacking[one]:
                heappush(ready, one)
    return order, lacking


def _circle(graph: Graph, needs: Sequence[Collection[int]], lacking: list[int]) -> GraphError:
    """Names operations that wait for each other."""
    place = next(place for place, count in enumerate(lacking) if count)
    seen: dict[int, int] = {}
    while place not in seen:
        seen[place] = len(seen)
        place = next(one for one in needs[place] if lacking[one])
    lines = sorted({graph.nodes[one].line for one, number in seen.items() if number >= seen[place]})
    shown = ", ".join(map(str, lines[:8])) + (", ..." if len(lines) > 8 else "")
    return GraphError(lines[0], f"the operations of {graph.word}s {shown} wait for each other")


def _streams(graph: Graph, order: Sequence[int]) -> dict[int, int]:
    """Computations of one stream follow each other in the order that is possible."""
    last: dict[tuple[int, int], int] = {}
    found: dict[int, int] = {}
    for place in order:
        node = graph.nodes[place]
        if node.kind == COMPUTE and node.mark != NO_STREAM:
            if (node.rank, node.mark) in last:
                found[place] = last[node.rank, node.mark]
            last[node.rank, node.mark] = place
    return found
