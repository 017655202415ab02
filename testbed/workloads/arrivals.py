"""Flows that arrive over time: what hosts are told of them, how long they take alone, and all of them at the least.
Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mrc_testbed.testbed.workloads.estimate import (
    LEAST_FRAME_BYTES,
    earliest_completion_ns,
    links_between,
    wire_ns,
)
from mrc_testbed.testbed.workloads.fairness import links_ns, pair_of
from mrc_testbed.topos.bundles import Pair
from mrc_testbed.topos.shape import Shape


class Arrival(NamedTuple):
    """A flow of a pair: begin after the start of the workload, bytes, and the names of its groups in expectations.
    `name`: its own in the trace, empty for none."""

    start_ns: int
    size: int
    groups: tuple[str, ...] = ()
    name: str = ""


class PairArrivals(NamedTuple):
    """All flows from one host to another, by begin."""

    src: int
    dst: int
    arrivals: Sequence[Arrival]


def alone_ns(shape: Shape, src: int, dst: int, size: int, answer_bytes: int) -> float:
    """Completion time of a flow that is alone in the idle fabric: a message of its size, and its acknowledgement of
    `answer_bytes` (0: not known, the shortest that there is)."""
    return earliest_completion_ns(shape, size, links_between(shape, src, dst), answer_bytes or LEAST_FRAME_BYTES)


def drained_ns(shape: Shape, pairs: Sequence[PairArrivals]) -> float:
    """When the last of all flows has been sent: no port of a host, and no link between switches, is faster. What waits
    at a host goes on at its line rate; links between switches are taken as busy from the first flow on."""
    ends = [busy[-1][1] for busy in (*_busy(shape, pairs, 0), *_busy(shape, pairs, 1))]
    between = Counter[Pair]()
    for each in pairs:
        pair = pair_of(shape, each.src, each.dst)
        if pair and pair[0] != pair[1]:
            between[pair] += sum(one.size for one in each.arrivals)
    begin_ns = min(each.arrivals[0].start_ns for each in pairs)
    return max(*ends, begin_ns + links_ns(shape, between))


def _busy(shape: Shape, pairs: Iterable[PairArrivals], end: int) -> Iterator[list[tuple[float, float]]]:
    """When each host is busy with what it sends (`end` 0) or receives (1), at line rate; hosts in no order."""
    by_host: dict[int, list[Arrival]] = {}
    for each in pairs:
        by_host.setdefault((each.src, each.dst)[end], []).extend(each.arrivals)
    for arrivals in by_host.values():
        spans: list[tuple[float, float]] = []
        for one in sorted(arrivals):
            took_ns = wire_ns(shape, one.size)
            if spans and one.start_ns <= spans[-1][1]:
                spans[-1] = (spans[-1][0], spans[-1][1] + took_ns)
            else:
                spans.append((one.start_ns, one.start_ns + took_ns))
        yield spans


def most_sending(shape: Shape, pairs: Sequence[PairArrivals], over_ns: int) -> float:
    """How many hosts send at their line rate at once, in the mean over any stretch of `over_ns`, at most."""
    changes = Counter[float]()
    for spans in _busy(shape, pairs, 0):
        for begin_ns, end_ns in spans:
            changes[begin_ns] += 1
            changes[end_ns] -= 1
    cells = Counter[int]()
    """Only those that are not whole within one stretch of time: however long flows are, there are few."""
    sending = whole = 0
    for begin_ns, end_ns in pairwise(sorted(changes)):
        sending += changes[begin_ns]
        first, last = int(begin_ns // over_ns), int(end_ns // over_ns)
        whole = max(whole, sending if last - first > 1 else 0)
        for cell in {first, last} if sending else ():
            inside_ns = min(end_ns, (cell + 1) * over_ns) - max(begin_ns, cell * over_ns)
            cells[cell] += round(sending * inside_ns)
    return max(whole, max(cells.values(), default=0) / over_ns)
