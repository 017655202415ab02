"""Lines over a logarithmic axis, drawn without a script; reading.js reads them off. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from markupsafe import Markup

from mrc_testbed.testbed.pages.terms import TERM_SCRIPTS
from mrc_testbed.testbed.planner.pages.svg import WIDTH, dash, element, line_colour, text

LEFT, RIGHT = 46.0, WIDTH - 14.0
"""Of the plot, in units of the drawing."""
TOP, BOTTOM = 26.0, 186.0
_HEIGHT = 222
_APART = 30.0
"""Least distance between texts on the axis."""
_ROOM = 1.1
"""Above the last of given levels, in shares of it."""
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))

STYLES = ("planner/pages/plan.css",)
SCRIPTS = (*TERM_SCRIPTS, "charts/svg.js", "charts/numbers.js", "planner/pages/reading.js")
"""Of pages that have charts, in this order."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """`points` by growing x; a level has one at each of its ends. `band`: the range of each point, read off but not
    drawn, as ranges with causes in common lie over each other. `dots`: what was asked for. `ends`: it cannot go on,
    as nothing larger can be built."""

    name: str
    points: Sequence[Point]
    dots: Sequence[Point] = ()
    ends: bool = False
    band: Sequence[Point] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """`across`: what the axis below has, from `low` to `high`. `marked`: values on it to point out; the first
    is read off to begin with. `levels`: of the axis up; round ones without. `sampled`: between points nothing is known,
    and all lines have the same."""

    title: str
    unit: str
    across: str
    low: float
    high: float
    lines: Sequence[Line]
    marked: Sequence[float] = ()
    levels: Sequence[float] = ()
    sampled: bool = False

    def document(self) -> dict[str, Any]:
        """What the script reads off."""
        return {
            "unit": self.unit,
            "across": self.across,
            "low": self.low,
            "high": self.high,
            "first": self.marked[0] if self.marked else None,
            "samples": [x for x, _ in self.lines[0].points] if self.sampled else [],
            "lines": [{"name": line.name, "points": line.points, "band": line.band} for line in self.lines],
        }


def reading_data(charts: Sequence[Chart]) -> dict[str, Any]:
    """What reading.js finds in the data of a page: the charts in the order of the page."""
    return {"plot": {"left": LEFT, "right": RIGHT}, "charts": [chart.document() for chart in charts]}


def short_count(value: float) -> str:
    """`131k`, `2.1M`."""
    return next((f"{value / one:.3g}{suffix}" for one, suffix in _SUFFIXES if value >= one), f"{value:g}")


def drawing(chart: Chart) -> Markup:
    """The chart, as an SVG without a name: its figure has one."""
    levels = chart.levels or _round_levels(max(y for line in chart.lines for _, y in (*line.points, *line.dots)))
    plot = _Plot(chart, levels[-1] * (_ROOM if chart.levels else 1))
    parts = [*plot.levels(levels), *plot.decades(), *plot.marked()]
    for number, line in enumerate(chart.lines):
        parts += plot.line(line, number) if line.points else ()
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {_HEIGHT}", aria_hidden="true")


def key(number: int) -> Markup:
    """A line's sample, for a legend."""
    sample = element(
        "path", d="M1 5H33", class_="line", style=f"stroke:{line_colour(number)}", stroke_dasharray=dash(number)
    )
    return element("svg", sample, viewBox="0 0 34 10", aria_hidden="true")


def _round_levels(greatest: float) -> list[float]:
    """From 0 to where `greatest` has room, three to seven; to 1 where nothing is above 0."""
    greatest = greatest or 1
    power = 10 ** floor(log10(greatest))
    step = next(one * power for one in (0.2, 0.5, 1, 2) if greatest / (one * power) <= 5.5)
    return [turn * step for turn in range(ceil(greatest / step * 1.001) + 1)]


@dataclass(frozen=True, slots=True)
class _Plot:
    chart: Chart
    most: float

    def x(self, value: float) -> float:
        low, high = log10(self.chart.low), log10(self.chart.high)
        return LEFT + (log10(value) - low) / (high - low) * (RIGHT - LEFT)

    def y(self, value: float) -> float:
        return BOTTOM - value / self.most * (BOTTOM - TOP)

    def levels(self, levels: Sequence[float]) -> Iterator[Markup]:
        yield element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis")
        for level in levels:
            y = self.y(level)
            yield element("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="grid") if level else Markup()
            yield text(LEFT - 6, y + 4, f"{level:.6g}", "tick", "end")
        if self.chart.unit:
            yield text(LEFT - 6, TOP - 12, self.chart.unit, "tick", "end")

    def decades(self) -> Iterator[Markup]:
        last = -_APART
        for power in range(floor(log10(self.chart.low)), floor(log10(self.chart.high)) + 1):
            value = 10.0**power
            if value < self.chart.low * 0.999:
                continue
            x = self.x(value)
            yield element("line", x1=x, x2=x, y1=BOTTOM, y2=BOTTOM + 4, class_="axis")
            if x - last >= _APART:
                yield text(x, BOTTOM + 16, short_count(value), "tick", "middle")
                last = x
        yield text(RIGHT, BOTTOM + 30, self.chart.across, "tick", "end")

    def marked(self) -> Iterator[Markup]:
        last = -_APART
        for value in sorted(self.chart.marked):
            x = self.x(value)
            yield element("line", x1=x, x2=x, y1=TOP - 6, y2=BOTTOM, class_="marked")
            if x - last >= _APART:
                yield text(x, TOP - 10, short_count(value), "name", "middle")
                last = x

    def line(self, line: Line, number: int) -> Iterator[Markup]:
        style = f"stroke:{line_colour(number)}"
        spots = [(self.x(x), self.y(y)) for x, y in line.points]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        yield element("path", d=path, class_="line", style=style, stroke_dasharray=dash(number))
        for x, y in line.dots:
            yield element("circle", cx=self.x(x), cy=self.y(y), r=4, style=f"fill:{line_colour(number)}", class_="dot")
        if line.ends:
            yield from self._end(*spots[-1], f"ends at {short_count(line.points[-1][0])}", style)

    def _end(self, x: float, y: float, said: str, style: str) -> Iterator[Markup]:
        """A bar across, with the size on the side that has room."""
        yield element("path", d=f"M{x:.1f} {y - 7:.1f}V{y + 7:.1f}", class_="line", style=style)
        yield text(min(x, RIGHT), y + 19, said, "tick", "end")
