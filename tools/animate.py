"""Animates the variants of one scenario, as an SVG without scripts: `animate.py OUT.svg RESULTS`, the first variant's
fabric above what each one sent. `make picture` runs them and draws docs/survives.svg.

Its clock runs through all runs at once and begins again. Where the reader's system asks for less motion, the end is
shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

import pandas as pd

from mrc_testbed.testbed.report.frames.run import Run, load_run
from mrc_testbed.testbed.report.transport_words import transport_words
from mrc_testbed.testbed.rundir.results import run_folders

WIDTH, LEFT, RIGHT = 720, 16, 16
_FABRIC, _CHART, _HEAD = 150, 108, 34
_SHOWN_S, _HELD_S = 16.0, 3.0
"""How long the runs take in the picture, and how long their end is shown."""
_GRAIN_S = 1.0
_COLOURS = ("#0b62a4", "#c0392b", "#2a9d4a", "#6f42c1")
_STYLE = """
  text { font: 18px sans-serif; fill: #333 } .name { font-weight: bold } .small { font-size: 15px; fill: #555 }
  .link { stroke: #9aa7b4; stroke-width: 1.2 } .cut { stroke: #d62828; stroke-width: 3.4; opacity: 0 }
  .switch { fill: #4b5966 } .down { fill: #d62828; opacity: 0 }
  .band { fill: #f3d9a4; fill-opacity: .6 } .axis { stroke: #999 } .step { stroke: #333; stroke-width: 1.6 }
  .line { fill: none; stroke-width: 2.2 } .cover { fill: #fff } .count { font-weight: bold }
"""


def main(out: Path, results: Path) -> None:
    """Draw the newest believed run of each variant in the folder `results`."""
    newest: dict[str | None, Run] = {}
    for folder in sorted(run_folders(results)):
        run = load_run(folder)
        if run.verdict not in (None, "inconclusive"):
            newest[run.scenario.variant] = run
    out.write_text(animation(list(newest.values())), encoding="utf-8")
    print(f"{out}: {', '.join(run.name for run in newest.values())}")


def animation(runs: Sequence[Run]) -> str:
    """The whole document."""
    end_s = max(float(run.steps.end_s.max()) for run in runs) * 1.02
    height = _FABRIC + len(runs) * (_HEAD + _CHART) + 30
    clock = Clock(end_s)
    parts = [f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>', *_fabric(runs[0], clock)]
    parts += _said(runs[0], clock)
    for number, run in enumerate(runs):
        parts += _chart(run, number, _FABRIC + number * (_HEAD + _CHART), clock)
    parts.append(_text(LEFT, height - 10, f"{end_s:.0f} s of the runs in {_SHOWN_S:.0f} s", "small"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    still = "@media (prefers-reduced-motion: reduce) { * { animation: none !important } .cover { display: none } }"
    return "\n".join([head, f"<style>{_STYLE}{clock.rules()}{still}</style>", *parts, "</svg>\n"])


class Clock:
    """Turns times of the runs, in s, into CSS animations of the picture."""

    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._rules: list[str] = []

    @property
    def lasts_s(self) -> float:
        """One turn of the picture."""
        return _SHOWN_S + _HELD_S

    def x(self, t_s: float) -> float:
        """Place of a time on the axis."""
        return LEFT + t_s / self._end_s * (WIDTH - LEFT - RIGHT)

    def visible(self, spans: Iterable[tuple[float, float]]) -> str:
        """Attributes of an element that is seen in these times alone. A span without an end lasts to the end."""
        points = [(0.0, 0)]
        for begin, end in sorted(spans):
            points += [(begin, 1), (end, 0)]
        frames = " ".join(f"{self._percent(at)}% {{ opacity: {shown} }}" for at, shown in points)
        return self._animated(frames, "step-end")

    def moved(self, to: float) -> str:
        """Attributes of an element that moves to the right by `to` while the runs go on."""
        at = 100 * _SHOWN_S / self.lasts_s
        start, end = "transform: translateX(0)", f"transform: translateX({to:.0f}px)"
        return self._animated(f"0% {{ {start} }} {at:.2f}%, 100% {{ {end} }}", "linear")

    def rules(self) -> str:
        """The CSS of all that was asked for."""
        return "\n".join(self._rules)

    def _percent(self, t_s: float) -> str:
        return f"{min(100.0, 100 * t_s / self._end_s * _SHOWN_S / self.lasts_s):.2f}"

    def _animated(self, frames: str, timing: str) -> str:
        name = f"a{len(self._rules)}"
        how = f"{name} {self.lasts_s:g}s {timing} infinite"
        self._rules.append(f"@keyframes {name} {{ {frames} }} .{name} {{ animation: {how} }}")
        return name


def _fabric(run: Run, clock: Clock) -> Iterator[str]:
    """Its planes beside each other: T1 above T0. What a fault touches is red as long as it lasts."""
    plan, shape = run.plan, run.plan.shape
    broken = _broken(run)
    wide = (WIDTH - LEFT - RIGHT) / shape.planes
    for plane in range(shape.planes):
        left = LEFT + plane * wide
        yield _text(left + wide / 2, 24, f"plane {plane}", "small", "middle")
        places = {
            switch.name: (left + wide * (each + 0.5) / len(row), 44 if tier else 108)
            for tier in (0, 1)
            for row in [[one for one in plan.switches if one.plane == plane and one.tier == tier]]
            for each, switch in enumerate(row)
        }
        for link in plan.links:
            if link.near.node in places and link.far.node in places:
                ends = (*places[link.near.node], *places[link.far.node])
                yield _line(ends, "link")
                if link.name in broken:
                    yield _line(ends, f"cut {clock.visible(broken[link.name])}")
        for name, (x, y) in places.items():
            yield f'<circle class="switch" cx="{x:.1f}" cy="{y}" r="6"/>'
            if name in broken:
                yield f'<circle class="down {clock.visible(broken[name])}" cx="{x:.1f}" cy="{y}" r="9"/>'


def _broken(run: Run) -> dict[str, list[tuple[float, float]]]:
    """When each link, or switch, was broken."""
    done = run.history[(run.history.type == "ok") & run.history.op.isin(["inject", "heal"])]
    found: dict[str, list[tuple[float, float]]] = {}
    begun: dict[str, float] = {}
    for row in done.itertuples():
        for name in {str(row.target), *str(row.links).replace(",", " ").split()}:
            if row.op == "inject":
                begun[name] = float(row.t_s)
            elif name in begun:
                found.setdefault(name, []).append((begun.pop(name), float(row.t_s)))
    for name, at in begun.items():
        found.setdefault(name, []).append((at, float(run.steps.end_s.max())))
    return found


def _said(run: Run, clock: Clock) -> Iterator[str]:
    """The kind of each fault and what it breaks, as long as it lasts."""
    broken = _broken(run)
    told = run.history[run.history.op == "inject"].drop_duplicates(["kind", "target"])
    for row in told.itertuples():
        kind = f"small {clock.visible(broken.get(str(row.target), []))}"
        yield _text(WIDTH / 2, 138, f"{row.kind} {row.target}", kind, "middle", ' style="opacity: 0"')


def _chart(run: Run, number: int, top: float, clock: Clock) -> Iterator[str]:
    """Goodput of all hosts, the ends of steps as marks below it, and behind a cover that moves away."""
    base, colour = top + _HEAD + _CHART - 14, _COLOURS[number % len(_COLOURS)]
    for begin, end in sorted({span for spans in _broken(run).values() for span in spans}):
        x, to = clock.x(begin), clock.x(end)
        yield f'<rect class="band" x="{x:.1f}" y="{top + _HEAD}" width="{to - x:.1f}" height="{base - top - _HEAD}"/>'
    rate = _rate(run)
    scale = (base - top - _HEAD - 6) / (run.plan.shape.port_rate_bps * run.plan.shape.planes * run.plan.shape.hosts)
    points = " ".join(f"{clock.x(at):.1f},{base - bps * scale:.1f}" for at, bps in rate.items())
    yield f'<polyline class="line" stroke="{colour}" points="{points}"/>'
    ends = [float(end) for end in run.steps.end_s]
    for end in ends:
        yield _line((clock.x(end), base + 3, clock.x(end), base + 11), "step")
    cover = f"cover {clock.moved(WIDTH)}"
    yield f'<rect class="{cover}" x="{LEFT}" y="{top + _HEAD - 2}" width="{WIDTH}" height="{_CHART}"/>'
    yield _line((LEFT, base, WIDTH - RIGHT, base), "axis")
    yield _text(LEFT, top + 24, f"{transport_words(run.scenario)}: sent by all hosts", "name")
    yield from _counts(run, ends, top + 24, clock)


def _rate(run: Run) -> pd.Series[float]:
    """Bits a second that hosts send on all of their ports, over the middle of each grain."""
    hosts = run.samples[run.samples.node.isin([host.name for host in run.plan.hosts])]
    total = hosts.groupby("t_s").tx_bytes.sum()
    grains = total.groupby((total.index // _GRAIN_S) * _GRAIN_S).first()
    return (grains.diff().shift(-1) * 8 / _GRAIN_S).dropna().clip(lower=0).rename(lambda at: at + _GRAIN_S / 2)


def _counts(run: Run, ends: Sequence[float], y: float, clock: Clock) -> Iterator[str]:
    """The number of steps that are done, at each time another text; the last one stays."""
    for done, (begin, end) in enumerate(zip([0.0, *ends], [*ends, 1e9], strict=True)):
        last = done == len(ends)
        said = f"{done} of {len(ends)} steps" + (f", slowest {run.steps.duration_s.max():.1f} s" if last else "")
        style = "" if last else ' style="opacity: 0"'
        yield _text(WIDTH - RIGHT, y, said, f"count {clock.visible([(begin, end)])}", "end", style)


def _line(ends: tuple[float, float, float, float], kind: str) -> str:
    x1, y1, x2, y2 = ends
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start", more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
