"""Ratios of all groups on one axis, a panel a figure: positions in per cent, so that the page needs no script. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, exp, floor, log

from mrc_testbed.testbed.compare.comparison import NEGLIGIBLE, RATIO, Comparison, ComparisonCell, ComparisonRow
from mrc_testbed.testbed.compare.words import TIMES, estimate_words, value_words

_WIDEST = 8.0
"""Ratios beyond this, or below one over it, are drawn at the edge, with an arrow."""
_LEAST_SPAN = 1.1
_MARKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class AxisMark:
    """A number on the axis, and its place in per cent. `inner`: a narrow screen has no room for it."""

    text: str
    at: float
    inner: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One group in a panel, and each of its runs. Places in per cent of the axis; `low`, `high` None: no interval."""

    label: str
    value: str
    ratio: str
    interval: str
    reads: str
    at: float | None = None
    low: float | None = None
    high: float | None = None
    beyond: str = ""
    runs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """The bars of one figure. `better`: in which direction it is better."""

    title: str
    better: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis from one over `most` to `most`."""

    most: float

    def place(self, value: float) -> float:
        """In per cent; what is beyond the ends is put at them."""
        share = 0.5 + 0.5 * log(value) / log(self.most)
        return round(100 * min(1.0, max(0.0, share)), 2)

    @property
    def marks(self) -> tuple[AxisMark, ...]:
        """The end and its half, on both sides, and 1."""
        inner = max((mark for mark in _MARKS if mark <= self.most**0.65), default=None)
        outer = max((mark for mark in _MARKS if mark <= self.most), default=self.most)
        above = [mark for mark in dict.fromkeys((inner, outer)) if mark]
        values = [*(1 / mark for mark in reversed(above)), 1.0, *above]
        ends = (min(values), 1.0, max(values))
        return tuple(AxisMark(f"{TIMES}{value:.2g}", self.place(value), value not in ends) for value in values)


def panels(comparison: Comparison) -> tuple[LogAxis, tuple[Panel, ...], tuple[str, ...]]:
    """Every figure that is compared by ratio, on one axis for all of them; and the titles of those that are not drawn,
    because all groups have the same."""
    rows = [row for row in comparison.rows if row.kind == RATIO and any(cell.estimate for cell in row.cells)]
    differing = [row for row in rows if any(_differs(cell) for cell in row.cells)]
    scale = _scale(differing)
    quiet = tuple(row.figure.title for row in rows if row not in differing)
    return scale, tuple(_panel(comparison, row, scale) for row in differing), quiet


def _differs(cell: ComparisonCell) -> bool:
    return cell.estimate is not None and abs(cell.estimate.value - 1) >= NEGLIGIBLE


def _scale(rows: Iterable[ComparisonRow]) -> LogAxis:
    """Wide enough for every ratio; intervals of few repeats may run out of it."""
    furthest = _LEAST_SPAN
    for row in rows:
        for cell in row.cells:
            if cell.estimate:
                away = abs(log(cell.estimate.value))
                reach = [abs(log(end)) for end in (cell.estimate.low, cell.estimate.high) if end]
                furthest = max([furthest, exp(1.15 * away), *(exp(min(end, 2 * away + 0.1)) for end in reach)])
    return LogAxis(min(furthest, _WIDEST))


def _panel(comparison: Comparison, row: ComparisonRow, scale: LogAxis) -> Panel:
    base = row.cells[comparison.base].mean
    bars = (
        _bar(column.short, row, cell, base, scale) for column, cell in zip(comparison.columns, row.cells, strict=True)
    )
    return Panel(row.figure.title, row.figure.better, tuple(bars))


def _bar(label: str, row: ComparisonRow, cell: ComparisonCell, base: float | None, scale: LogAxis) -> Bar:
    value = value_words(row, cell)
    if not base or cell.mean is None:
        return Bar(label, value, "", "", "")
    runs = tuple(scale.place(one / base) for one in cell.values) if len(cell.values) > 1 else ()
    if cell.estimate is None:
        return Bar(label, value, "", "", "", scale.place(1), runs=runs)
    what, interval = estimate_words(row, cell.estimate)
    low, high = cell.estimate.low, cell.estimate.high
    left, right = (None, None) if low is None or high is None else (floor(scale.place(low)), ceil(scale.place(high)))
    beyond = _beyond(cell.estimate.value, low, high, scale)
    return Bar(label, value, what, interval, cell.reads, scale.place(cell.estimate.value), left, right, beyond, runs)


def _beyond(value: float, low: float | None, high: float | None, scale: LogAxis) -> str:
    """On which side it runs out of the axis."""
    down = min(value, low or value) < 1 / scale.most
    up = max(value, high or value) > scale.most
    return "both" if down and up else "down" if down else "up" if up else ""
