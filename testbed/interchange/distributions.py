"""Distributions of flow sizes: lines `bytes percent`, from 0 to 100, linear between (HPCC's `traffic_gen`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mrc_testbed.testbed.interchange.found import Found, SizePoint
from mrc_testbed.testbed.interchange.text import FilePlace, lines_of, shown
from mrc_testbed.testbed.workloads.graph import MAX_BYTES

KIND = "cdf"
MOST_POINTS = 10_000
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?", re.ASCII)


def read_sizes(file: Path) -> Found:
    """A distribution. Raises FormatError."""
    place = FilePlace(file)
    points: list[SizePoint] = []
    for line in lines_of(place):
        if line and not line.startswith("#"):
            points.append(_point(place, line, points))
    if len(points) < 2:
        raise place.wrong("needs at least two points")
    if points[0].percent != 0:
        raise place.wrong(f"begins at {points[0].percent:g} percent, and must begin at 0")
    if points[-1].percent != 100:
        raise place.wrong(f"ends at {points[-1].percent:g} percent, and must end at 100")
    if points[-1].bytes < 1:
        raise place.wrong("has no sizes above 0")
    return Found(KIND, 0, sizes=tuple(points))


def _point(place: FilePlace, line: str, before: Sequence[SizePoint]) -> SizePoint:
    words = line.split()
    if len(words) != 2 or not all(_NUMBER.fullmatch(word) for word in words):
        raise place.wrong(f"{shown(line)} must be `bytes percent`")
    found = SizePoint(float(words[0]), float(words[1]))
    if found.bytes > MAX_BYTES or found.percent > 100:
        raise place.wrong(f"sizes go up to {MAX_BYTES} bytes, and percent up to 100")
    if before and (found.bytes < before[-1].bytes or found.percent < before[-1].percent):
        raise place.wrong("is less than the point before it; both must grow")
    if len(before) == MOST_POINTS:
        raise place.wrong(f"more than {MOST_POINTS} points")
    return found


def size_lines(points: Sequence[SizePoint]) -> Iterator[str]:
    """The file, line by line without line ends."""
    return (f"{_plain(point.bytes)} {_plain(point.percent)}" for point in points)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
