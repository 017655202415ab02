"""Distributions of flow sizes: lines `bytes percent`, from 0 to 100, linear between (HPCC's `traffic_gen`). Others have
fractions up to 1, a column between the two, commas, and a first line with the mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.interchange.found import Found, SizePoint
from mrc_testbed.testbed.interchange.text import FilePlace, lines_of, shown
from mrc_testbed.testbed.workloads.graph import MAX_BYTES
from mrc_testbed.testbed.workloads.sizes import SizeCdf

KIND = "cdf"
MOST_POINTS = 10_000
_NEAR = 0.05
"""A mean that differs by less is that of the points."""
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{0,18})?(?:[eE]-?[0-9]{1,2})?", re.ASCII)


class _Point(NamedTuple):
    """As it is written: `share` is percent or a fraction."""

    bytes: Decimal
    share: Decimal


def read_sizes(file: Path) -> Found:
    """A distribution. Raises FormatError."""
    place, mean = FilePlace(file), ""
    points: list[_Point] = []
    for line in lines_of(place):
        words = line.replace(",", " ").split()
        if not words or line.startswith("#"):
            continue
        if len(words) == 1 and not points and not mean and _NUMBER.fullmatch(words[0]):
            mean = words[0]
        else:
            points.append(_point(place, line, words, points))
    return _found(place, points, mean)


def _found(place: FilePlace, points: Sequence[_Point], mean: str) -> Found:
    if len(points) < 2:
        raise place.wrong("needs at least two points")
    fractions = points[-1].share == 1
    percent = [float(point.share * (100 if fractions else 1)) for point in points]
    if percent[0] != 0:
        raise place.wrong(f"begins at {percent[0]:g} percent, and must begin at 0")
    if percent[-1] != 100:
        raise place.wrong(f"ends at {percent[-1]:g} percent, and must end at 100, or at 1 where they are fractions")
    if points[-1].bytes < 1:
        raise place.wrong("has no sizes above 0")
    sizes = tuple(SizePoint(float(point.bytes), share) for point, share in zip(points, percent, strict=True))
    told = ["fractions up to 1: written as percent"] if fractions else []
    return Found(KIND, 0, sizes=sizes, lost=(*told, *_mean_lost(sizes, mean)))


def _mean_lost(sizes: tuple[SizePoint, ...], mean: str) -> tuple[str, ...]:
    """Whether the mean that the file says is that of its points."""
    reckoned = SizeCdf(sizes).mean
    if not mean or abs(float(mean) - reckoned) <= _NEAR * reckoned:
        return ()
    return (f"mean of {mean} bytes in the first line: that of the points is {reckoned:g}",)


def _point(place: FilePlace, line: str, words: Sequence[str], before: Sequence[_Point]) -> _Point:
    if len(words) not in (2, 3) or not all(_NUMBER.fullmatch(word) for word in words):
        raise place.wrong(f"{shown(line)} must be `bytes percent`")
    found = _Point(Decimal(words[0]), Decimal(words[-1]))
    if found.bytes > MAX_BYTES or found.share > 100:
        raise place.wrong(f"sizes go up to {MAX_BYTES} bytes, and percent up to 100")
    if before and (found.bytes < before[-1].bytes or found.share < before[-1].share):
        raise place.wrong("is less than the point before it; both must grow")
    if len(before) == MOST_POINTS:
        raise place.wrong(f"more than {MOST_POINTS} points")
    return found


def size_lines(points: Sequence[SizePoint]) -> Iterator[str]:
    """The file, line by line without line ends."""
    return (f"{_plain(point.bytes)} {_plain(point.percent)}" for point in points)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
