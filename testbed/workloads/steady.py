"""Which flows are active together at what time, and which part of that time gives valid rates. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from mrc_testbed.topos.shape import Shape

SETTLE_RTTS = 20
MIN_SETTLE_NS = 200_000_000


class Epoch(NamedTuple):
    """A time span in which no flow begins or ends, and the names of the active flows."""

    begin_ns: int
    end_ns: int
    flows: frozenset[str]


def settle_ns(shape: Shape) -> int:
    """Settling time of rates after any flow has begun or ended."""
    return max(SETTLE_RTTS * shape.rtt_ns, shape.least_ns(MIN_SETTLE_NS))


def epochs(spans: Mapping[str, tuple[int, int]]) -> list[Epoch]:
    """The spans between begins and ends of flows (name: begin, end), in order; none without a flow."""
    times = sorted({t_ns for span in spans.values() for t_ns in span})
    found = []
    for begin_ns, end_ns in pairwise(times):
        going = frozenset(name for name, (begin, end) in spans.items() if begin <= begin_ns and end_ns <= end)
        if going:
            found.append(Epoch(begin_ns, end_ns, going))
    return found
