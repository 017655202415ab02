"""All rows of a frame on a terminal: run, progress, planes, and latest events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.live.planes import LABELS, LiveFrame, PlanePanel
from mrc_testbed.testbed.live.rows import Row, Signs, StyledText, beside, cut, length, padded
from mrc_testbed.testbed.runner.events import count_text, progress_text, seconds_text
from mrc_testbed.topos.plan import Plan

EVERY_S = 0.2
"""Usual time between frames: counters and snapshots have the same period."""
SMALLEST = (40, 12)
"""Minimum columns and rows for more than run and progress."""
_ASIDE_COLUMNS = 130
"""From this width on the ticker is to the right of the planes, with at least this many columns:"""
_TICKER_COLUMNS = 58
_TICKER_ROWS = range(4, 21)
_HEAD_ROWS = 3
_GAP = 3
_PHASES = {
    "build": "building the fabric, starting daemons",
    "verify": "comparing the kernel with the plan",
    "cold start": "injecting cold-start faults",
    "warm up": "probing every path",
    "barrier": "starting all programs",
    "run": "running",
    "heal": "healing the remaining faults",
    "settle": "waiting for paths to be restored",
    "tear down": "reading the final counters",
}
_LIGHTS = {
    "good": ("good", "machine keeps time"),
    "strained": ("strained", "machine strained"),
    "lost": ("bad", "machine too slow"),
    "unknown": ("dim", "machine not measured yet"),
    "virtual": ("dim", "virtual time"),
}
_TICKER = {
    "fault": ("fault", "fault"),
    "heal": ("heal", "heal"),
    "map": ("map", "skip"),
    "qp": ("QP", "bad"),
    "note": ("note", ""),
}
"""First word and style of a line; lines about endpoints' reactions have no such word, and are indented."""


class Layout:
    """Lays out frames of a fabric for a terminal of `columns` x `rows`, without its last row."""

    def __init__(self, plan: Plan, signs: Signs, columns: int, rows: int) -> None:
        self._signs = signs
        self._speed = plan.shape.speed
        self._columns = columns
        self._room = rows - 1
        self._small = columns < SMALLEST[0] or rows < SMALLEST[1]
        aside = PlanePanel(plan, signs, columns - _TICKER_COLUMNS - _GAP, self._room - _HEAD_ROWS - 3)
        below = PlanePanel(plan, signs, columns, self._room - _HEAD_ROWS - 3 - _TICKER_ROWS.start)
        as_good = len(aside.banks) == len(below.banks) and aside.detailed >= below.detailed
        self._aside = columns >= _ASIDE_COLUMNS and as_good
        self._panel = aside if self._aside else below

    def rows(self, frame: LiveFrame) -> list[Row]:
        """The rows of a frame, the same number for every frame."""
        found = self._head(frame)
        if not self._small:
            found += [
                *(self._two_columns(frame) if self._aside else self._one_column(frame)),
                self._legend(bool(frame["evs"])),
            ]
        return [cut(row, self._columns, self._signs.more) for row in found[: max(1, self._room)]]

    def _one_column(self, frame: LiveFrame) -> list[Row]:
        planes = self._panel.rows(frame)[: self._room - _HEAD_ROWS - 3 - _TICKER_ROWS.start]
        left = self._room - _HEAD_ROWS - len(planes) - 3
        return [*planes, self._sends(frame, self._columns), [], *self._ticker(frame, max(left, _TICKER_ROWS.start))]

    def _two_columns(self, frame: LiveFrame) -> list[Row]:
        width = self._panel.width
        left = [*self._panel.rows(frame), [], self._sends(frame, width)]
        height = min(max(len(left), _TICKER_ROWS.stop - 5), self._room - _HEAD_ROWS - 1)
        left += [[] for _ in range(height - len(left))]
        pairs = zip(left, self._ticker(frame, height), strict=False)
        return [[*padded(cut(one, width, self._signs.more), width + _GAP), *two] for one, two in pairs]

    def _head(self, frame: LiveFrame) -> list[Row]:
        scenario, t_s = frame["scenario"], frame["t_s"]
        since = "" if t_s is None else f"  {t_s:.1f} s" if t_s >= 0.1 or not t_s else f"  {t_s * 1e3:.2f} ms"
        phase = _PHASES.get(frame["phase"], frame["phase"])
        what = [
            StyledText(scenario["name"], "title"),
            StyledText(f"  seed {scenario['seed']}", "dim"),
            StyledText(f"{since}  {phase}"),
        ]
        style, words = _LIGHTS[frame["fidelity"]["light"]]
        light = [StyledText(self._signs.light, style), StyledText(f" {words}")]
        figure = [StyledText(frame["fidelity"]["text"] if style != "dim" else "", "dim")]
        return [self._apart(what, light), self._work(frame), self._apart([], figure)]

    def _apart(self, left: Row, right: Row) -> Row:
        """Texts at both margins if there is room."""
        wide = length(left) + _GAP + length(right) <= self._columns
        return beside(left, right, self._columns) if wide else [*left, StyledText("  "), *right]

    def _work(self, frame: LiveFrame) -> Row:
        steps, flows, progress = frame["steps"], frame["flows"], frame["progress"]
        row: Row = []
        if not (progress or steps or flows):
            row.append(StyledText(" ".join(frame["scenario"]["about"].split()), "dim"))
        works = [progress] if progress and not steps else steps
        if sum(work["of"] for work in works):
            row += [*self._bar(works), StyledText(" ")]
        for one in steps:
            last, worst = (seconds_text(one[key]) for key in ("last_s", "worst_s"))
            whose = f"{one['job']} " if one["job"] else ""
            row.append(StyledText(f" {whose}step {count_text(one['done'], one['of'])}  last {last}  worst {worst}"))
        if progress and not steps:
            row.append(StyledText(f" {progress_text(progress['done'], progress['of'])}"))
        if flows:
            most = f" of {flows['of_bps'] / 1e6:.1f}" if flows["of_bps"] else ""
            row.append(StyledText(f"  flows {flows['rate_bps'] / 1e6:.1f}{most} Mb/s"))
        if left := frame.get("left"):
            row.append(StyledText(f"  {left}"))
        slow = frame["every_s"] > EVERY_S * 1.5
        return [*row, StyledText(f"  drawn every {frame['every_s']:.1f} s", "strained")] if slow else row

    def _bar(self, works: Sequence[Mapping[str, float]]) -> Row:
        cells = max(10, self._columns // 4)
        share = sum(work["done"] for work in works) / sum(work["of"] for work in works)
        done = min(cells, int(cells * share))
        return [StyledText(self._signs.done * done, "load"), StyledText(self._signs.to_do * (cells - done), "dim")]

    def _sends(self, frame: LiveFrame, width: int) -> Row:
        """Every host if there is room, else the least and the most."""
        rates = {name: host["goodput_bps"] / 1e6 for name, host in frame["hosts"].items()}
        label = [StyledText(f"{'Mb/s':{LABELS}}", "dim"), StyledText(f"{sum(rates.values()):.0f} in all", "load")]
        each = "".join(f"  {name} {rate:.0f}" for name, rate in rates.items())
        if length(label) + len(each) > width:
            low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
            each = f"  from {rates[low]:.1f} ({low}) to {rates[high]:.1f} ({high})"
        return [*label, StyledText(each)]

    def _ticker(self, frame: LiveFrame, rows: int) -> list[Row]:
        lines = frame["ticker"][-min(rows, _TICKER_ROWS.stop) :]
        return [self._line(line) for line in lines] + [[] for _ in range(rows - len(lines))]

    def _line(self, line: Mapping[str, Any]) -> Row:
        word, style = _TICKER.get(line["kind"], ("", ""))
        since = "" if line["t_s"] is None else self._moment(line["t_s"])
        indent = "" if word else "  "
        return [
            StyledText(f"{since:>6}  ", "dim"),
            StyledText(f"{word:7}", style),
            StyledText(f"{indent}{line['text']}"),
        ]

    def _moment(self, t_s: float) -> str:
        """Without a unit in seconds; on a faster network they are too long."""
        return f"{t_s:.1f}" if self._speed == 1 else seconds_text(t_s)

    def _legend(self, has_evs: bool) -> Row:
        signs = self._signs
        links = f"{signs.loads[0]}{signs.loads[-1]} load  {signs.broken} down  {signs.lossy} lossy  {signs.slow} slow"
        evs = f"EVs: {signs.good} good  {signs.skip} skip  {signs.bad} bad  {signs.denied} denied"
        return [StyledText(f"{links}   {evs}" if has_evs else links, "dim")]
