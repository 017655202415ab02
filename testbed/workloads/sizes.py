"""Distributions of flow sizes: points of a cumulative distribution, linear between them. Pure.

The named ones are published: `websearch` is the web search of "Data Center TCP (DCTCP)" (SIGCOMM 2010, Fig. 4),
`hadoop` a Hadoop cluster of Facebook, "Inside the Social Network's (Datacenter) Network" (SIGCOMM 2015), both with the
points by which HPCC (SIGCOMM 2019) and simulators since reproduce them (alibaba-edu/High-Precision-Congestion-Control,
traffic_gen).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from mrc_testbed.testbed.workloads.trace import MOST_BYTES, TraceMistake

Point = tuple[float, float]
"""Bytes, and the percentage of flows that have at most these."""
WHOLE = 100.0
MOST_POINTS = 10_000
_FORM = "`bytes percent`, such as 10000 15"


@dataclass(frozen=True, slots=True)
class SizeCdf:
    """A distribution: points by size, the first at 0 %, the last at 100 %."""

    points: tuple[Point, ...]

    @property
    def mean(self) -> float:
        """In bytes."""
        parts = ((high - low) * (left + right) / 2 for (left, low), (right, high) in pairwise(self.points))
        return sum(parts) / WHOLE

    def size(self, share: float) -> int:
        """The size that this share of flows, from 0 to 1, does not exceed; at least a byte."""
        wanted = share * WHOLE
        at = bisect_left(self.points, wanted, lo=1, key=itemgetter(1))
        while at < len(self.points) and self.points[at - 1][1] == self.points[at][1]:
            at += 1
        if at == len(self.points):
            return max(1, round(self.points[-1][0]))
        (left, low), (right, high) = self.points[at - 1 : at + 1]
        return max(1, round(left + (right - left) * (wanted - low) / (high - low)))


def read_cdf(text: str) -> SizeCdf:
    """Lines `bytes percent`; empty ones and those that begin with `#` are passed over. Raises TraceMistake."""
    points: list[Point] = []
    line = 1
    for line, words in enumerate((each.split() for each in text.splitlines()), 1):
        if not words or words[0].startswith("#"):
            continue
        point = _point(line, words)
        if points and (point[0] < points[-1][0] or point[1] < points[-1][1]):
            raise TraceMistake(line, "falls below the line before it; sizes and percentages must not fall")
        if not points and point[1] != 0:
            raise TraceMistake(line, f"begins at {point[1]:g} %; the first line must have 0 %, such as 0 0")
        if len(points) == MOST_POINTS:
            raise TraceMistake(line, f"more than {MOST_POINTS} points")
        points.append(point)
    if not points or points[-1][1] != WHOLE:
        raise TraceMistake(line, "does not end at 100 %; the last line must have the largest size and 100")
    return SizeCdf(tuple(points))


def _point(line: int, words: list[str]) -> Point:
    try:
        size, percent = map(float, words)
    except ValueError:
        raise TraceMistake(line, f"is no point of a distribution; write {_FORM}") from None
    if not 0 <= size <= MOST_BYTES:
        raise TraceMistake(line, f"has a size of {words[0]}, and must have one from 0 to {MOST_BYTES} bytes")
    if not 0 <= percent <= WHOLE:
        raise TraceMistake(line, f"has {words[1]} %, and must have 0 to 100")
    return size, percent


_WEBSEARCH = (
    *((0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60)),
    *((1_000_000, 70), (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100)),
)
_HADOOP = (
    *((0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50), (1000, 60)),
    *((2000, 67), (7000, 70), (30_000, 72), (50_000, 82), (80_000, 87), (120_000, 90), (300_000, 95)),
    *((1_000_000, 97.5), (2_000_000, 99), (10_000_000, 100)),
)
SIZES: Mapping[str, SizeCdf] = {"websearch": SizeCdf(_WEBSEARCH), "hadoop": SizeCdf(_HADOOP)}
"""The published ones by name."""
