"""Slowdown of flows over their size, as SVG text with logarithmic axes: of one run, or of several. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup

WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 150, 14, 44
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
_LABEL_GAP = 14


class SlowdownLine(NamedTuple):
    """Points (bytes, slowdown) by size."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = ""


def slowdown_drawing(lines: Sequence[SlowdownLine]) -> Markup:
    """All lines in one picture, each with its name at its end. There is at least one, with a point."""
    frame = _Frame(lines)
    parts = [*frame.grid(), *(_line(line, frame) for line in lines), *_names(lines, frame)]
    said = "Slowdown over the size of flows"
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">'
    return Markup("{}{}</svg>").format(Markup(head), Markup("").join(parts))


class _Frame:
    """Whole decades around all points."""

    def __init__(self, lines: Sequence[SlowdownLine]) -> None:
        sizes = [size for line in lines for size, _ in line.points]
        slowed = [slowdown for line in lines for _, slowdown in line.points]
        self.across = floor(log10(min(sizes))), max(ceil(log10(max(sizes))), floor(log10(min(sizes))) + 1)
        self.up = min(0, floor(log10(min(slowed)) + 0.01)), max(1, ceil(log10(max(slowed))))

    def x(self, size: float) -> float:
        """Of a size."""
        low, high = self.across
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (log10(size) - low) / (high - low)

    def y(self, slowdown: float) -> float:
        """Of a slowdown."""
        low, high = self.up
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (max(log10(slowdown), low) - low) / (high - low)

    def grid(self) -> Iterator[Markup]:
        """A line for each decade, with its value."""
        line = Markup('<line class="grid" stroke="var(--rule)" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
        for power in range(self.across[0], self.across[1] + 1):
            x = self.x(10.0**power)
            yield line.format(x, _TOP, x, HEIGHT - _BOTTOM)
            yield _text(x, HEIGHT - _BOTTOM + 16, _size_words(10.0**power), "middle")
        for power in range(self.up[0], self.up[1] + 1):
            y = self.y(10.0**power)
            yield line.format(_LEFT, y, WIDTH - _RIGHT, y)
            yield _text(_LEFT - 6, y + 4, f"{10.0**power:g}", "end")
        yield _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, "size of the flow", "middle")
        yield _text(_LEFT - 44, _TOP + 4, "x", "start")


def _line(line: SlowdownLine, frame: _Frame) -> Markup:
    points = " ".join(f"{frame.x(size):.1f},{frame.y(slowdown):.1f}" for size, slowdown in line.points)
    drawn = '<polyline fill="none" stroke-width="2" stroke="{}" stroke-dasharray="{}" points="{}"/>'
    dot = Markup('<circle r="2.5" fill="{}" cx="{:.1f}" cy="{:.1f}"/>')
    dots = (dot.format(line.colour, frame.x(size), frame.y(slowdown)) for size, slowdown in line.points)
    return Markup(drawn).format(line.colour, line.dash, points) + Markup("").join(dots)


def _names(lines: Sequence[SlowdownLine], frame: _Frame) -> Iterator[Markup]:
    """Beside the ends of the lines, none over another."""
    lowest = float(HEIGHT)
    for line in sorted(lines, key=lambda line: -frame.y(line.points[-1][1])):
        lowest = min(frame.y(line.points[-1][1]) + 4, lowest - _LABEL_GAP)
        yield _text(frame.x(line.points[-1][0]) + 8, lowest, line.name, "start", line.colour)


def _text(x: float, y: float, said: str, anchor: str, colour: str = "var(--ink-2)") -> Markup:
    form = Markup('<text font-size="12" text-anchor="{}" fill="{}" x="{:.1f}" y="{:.1f}">{}</text>')
    return form.format(anchor, colour, x, y, said)


def _size_words(size: float) -> str:
    factor, unit = next(each for each in _UNITS if size >= each[0] or each[0] == 1)
    return f"{size / factor:g} {unit}"
