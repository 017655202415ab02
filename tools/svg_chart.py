"""Charts as SVG text: lines over time with bands behind them, dots, and groups of bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import floor, log10

WIDTH = 760
_LEFT, _RIGHT, _TOP, _PLOT, _BOTTOM = 60, 16, 46, 170, 44
_HEIGHT = _TOP + _PLOT + _BOTTOM
_FIGURE_WIDTH = 28
"""What a bar needs for its number above it."""
_COLOURS = ("#0b62a4", "#d1495b", "#2a9d4a", "#c77d12", "#6f42c1", "#3a7d80")
_STYLE = """
  text { font: 12px sans-serif; fill: #333 } .title { font-weight: bold; font-size: 13px }
  .grid { stroke: #e3e3e3 } .band { fill: #f3d9a4; fill-opacity: .55 } .line { fill: none; stroke-width: 1.8 }
"""

Point = tuple[float, float]
Place = Callable[[Point], Point]


@dataclass(frozen=True)
class Series:
    """Points of one colour. `kind`: `line`, `dots`, or `bars`: then x counts the categories of the panel. `cuts`:
    points, by number, to which no line leads."""

    name: str
    points: Sequence[Point]
    kind: str = "line"
    cuts: Collection[int] = ()


@dataclass(frozen=True)
class Panel:
    """One chart. `bands`: times in which something was broken. `categories`: the texts below bars."""

    title: str
    across: str
    up: str
    series: Sequence[Series]
    bands: Sequence[tuple[float, float]] = ()
    categories: Sequence[str] = ()


def drawing(panels: Sequence[Panel]) -> str:
    """The panels below each other."""
    height = len(panels) * _HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    drawn = [f'<g transform="translate(0 {row * _HEIGHT})">\n{_panel(one)}</g>\n' for row, one in enumerate(panels)]
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
    return f"{head}\n<style>{_STYLE}</style>\n{ground}{''.join(drawn)}</svg>\n"


def _panel(panel: Panel) -> str:
    xs, ys = ([point[axis] for one in panel.series for point in one.points] for axis in (0, 1))
    low, high = (-0.5, len(panel.categories) - 0.5) if panel.categories else (min(0, *xs), max(xs))
    step = _step(max(ys) * 1.08)
    most = max(ys) * 1.08

    def place(point: Point) -> Point:
        x = _LEFT + (point[0] - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)
        return x, _TOP + _PLOT * (1 - point[1] / most)

    parts = [_text(_LEFT, 18, panel.title, "title"), *_legend(panel), *_across(panel, high, place)]
    for turn in range(int(most / step) + 1):
        _, y = place((low, turn * step))
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{turn * step:g}", anchor="end"))
    for begin, end in panel.bands:
        (x, _), (to, _) = place((max(begin, low), 0)), place((min(end, high), 0))
        parts.append(f'<rect class="band" x="{x:.1f}" y="{_TOP}" width="{max(to - x, 1):.1f}" height="{_PLOT}"/>')
    for number, one in enumerate(panel.series):
        parts += _drawn(one, number, len(panel.series), place)
    parts.append(_text(WIDTH - _RIGHT, 18, panel.up, anchor="end"))
    return "\n".join(parts) + "\n"


def _drawn(series: Series, number: int, of: int, place: Place) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    if series.kind == "bars":
        return [_bar(point, number, of, colour, place) for point in series.points]
    placed = [place(point) for point in series.points]
    if series.kind == "dots":
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in placed]
    begins = [0, *sorted(series.cuts), len(placed)]
    paths = (" ".join(f"{x:.1f},{y:.1f}" for x, y in placed[begin:end]) for begin, end in pairwise(begins))
    return [f'<polyline class="line" stroke="{colour}" points="{path}"/>' for path in paths]


def _bar(point: Point, number: int, of: int, colour: str, place: Place) -> str:
    width = 0.8 / of
    left, top = place((point[0] - 0.4 + number * width, point[1]))
    right, bottom = place((point[0] - 0.4 + (number + 0.92) * width, 0))
    wide = right - left >= _FIGURE_WIDTH
    figure = _text((left + right) / 2, top - 4, f"{point[1]:.3g}", anchor="middle") if wide else ""
    size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
    return f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{colour}"/>{figure}'


def _across(panel: Panel, high: float, place: Place) -> list[str]:
    """What is below the plot."""
    y = _TOP + _PLOT + 16
    found = [_text(WIDTH - _RIGHT, y + 18, panel.across, anchor="end")]
    if panel.categories:
        marks: list[tuple[float, str]] = list(enumerate(panel.categories))
    else:
        step = _step(high)
        marks = [(turn * step, f"{turn * step:g}") for turn in range(int(high / step) + 1)]
    for at, name in marks:
        x, _ = place((at, 0))
        found.append(_text(x, y, name, anchor="middle"))
    return found


def _legend(panel: Panel) -> list[str]:
    found, x = [], _LEFT
    if len(panel.series) < 2:
        return []
    for number, one in enumerate(panel.series):
        colour = _COLOURS[number % len(_COLOURS)]
        found.append(f'<rect x="{x}" y="27" width="10" height="10" fill="{colour}"/>{_text(x + 14, 36, one.name)}')
        x += 34 + 7 * len(one.name)
    return found


def _step(span: float) -> float:
    """A round distance of marks, four to eight of them."""
    rough = span / 6
    unit = 10.0 ** floor(log10(rough))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(text)}</text>'
