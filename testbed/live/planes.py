"""The planes of a fabric as columns of a terminal: host ports, T0-T1 links, EVs by T1. Pure.

With enough room each T1 has a row with its links and a bar of its EVs; else it is one character in wrapped rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mrc_testbed.testbed.live.paths import HASHED, LOCAL
from mrc_testbed.testbed.live.rows import Row, Signs, StyledText, joined, padded
from mrc_testbed.topos.names import link_name, switch_name
from mrc_testbed.topos.plan import Plan

LiveFrame = Mapping[str, Any]
LABELS = 7
"""Columns for row names at the left."""
_DENSE_COLUMNS = 9
"""Minimum width of a plane, including the space between planes."""
_FULL_NAME_COLUMNS = 14
_SHORTEST_BAR = 4
_WIDEST = 30
_EV_ORDER = ("good", "skip", "bad", "denied")
_WORST_FIRST = ("bad", "skip", "denied", "good")
_BUSY = 0.02
"""A link below this load is idle: it carries only probes and ACKs."""


@dataclass(frozen=True)
class _Names:
    """The parts of a plane. `ports`: by T0 the hosts below it, each with its link; `up`: by T1 its links."""

    plane: int
    t0s: tuple[str, ...]
    ports: tuple[tuple[tuple[str, str], ...], ...]
    up: dict[str, tuple[str, ...]]


def _names(plan: Plan, plane: int) -> _Names:
    groups = range(plan.shape.t0_groups)
    t0s = tuple(switch_name(plane, 0, group) for group in groups)
    hosts = [[host.name for host in plan.hosts if host.group == group] for group in groups]
    ports = tuple(tuple((host, link_name(host, t0s[group])) for host in hosts[group]) for group in groups)
    t1s = [switch_name(plane, 1, t1) for t1 in range(plan.shape.t1 if len(t0s) > 1 else 0)]
    return _Names(plane, t0s, ports, {t1: tuple(link_name(t0, t1) for t0 in t0s) for t1 in t1s})


class PlanePanel:
    """Draws the planes of `plan`. `detailed`: a T1 has its own row, if `width` and `rows` suffice. `banks`: which
    planes are side by side."""

    def __init__(self, plan: Plan, signs: Signs, width: int, rows: int) -> None:
        planes = plan.shape.planes
        most = max(1, (width - LABELS + 1) // _DENSE_COLUMNS)
        in_a_row = _ceil(planes, _ceil(planes, most))
        self.banks = [range(at, min(at + in_a_row, planes)) for at in range(0, planes, in_a_row)]
        self._names = [_names(plan, plane) for plane in range(planes)]
        self._signs = signs
        self._width = min(_WIDEST, max(_DENSE_COLUMNS, (width - LABELS + 1) // in_a_row) - 1)
        self.detailed = self._width > plan.shape.t0_groups + _SHORTEST_BAR and self._detailed_rows() <= rows

    def _detailed_rows(self) -> int:
        first = self._names[0]
        ports = _wrap([[StyledText(" ")] * (1 + len(hosts)) for hosts in first.ports], self._width)
        return len(self.banks) * (len(ports) + len(first.up) + 2)

    @property
    def width(self) -> int:
        """Its width in columns."""
        return LABELS + len(self.banks[0]) * (self._width + 1) - 1

    def rows(self, frame: LiveFrame) -> list[Row]:
        """Banks of planes one above the other; always the same number of rows."""
        return [row for bank in self.banks for row in self._bank(frame, bank)]

    def _bank(self, frame: LiveFrame, planes: range) -> list[Row]:
        columns = [self._plane(frame, self._names[plane]) for plane in planes]
        labels = [label for label, _ in columns[0]]
        return [
            [StyledText(f"{label:{LABELS}}", "dim"), *_side_by_side([column[at][1] for column in columns], self._width)]
            for at, label in enumerate(labels)
        ]

    def _plane(self, frame: LiveFrame, names: _Names) -> list[tuple[str, Row]]:
        """Rows with their labels."""
        ports = [
            [self._node(frame, t0), *(self._port(frame, names.plane, *port) for port in below)]
            for t0, below in zip(names.t0s, names.ports, strict=True)
        ]
        body = self._bars if self.detailed else self._cells
        return [
            ("", self._title(frame, names)),
            *_labelled("ports", _wrap(ports, self._width)),
            *body(frame, names),
        ]

    def _title(self, frame: LiveFrame, names: _Names) -> Row:
        sent = [frame["links"][link]["load"][0] for below in names.ports for _, link in below]
        load = f"{sum(sent) / len(sent):.0%}"
        name = f"plane {names.plane}" if self._width >= _FULL_NAME_COLUMNS else f"p{names.plane}"
        return [StyledText(name, "title"), StyledText(f"{load:>{self._width - len(name)}}", "load")]

    def _bars(self, frame: LiveFrame, names: _Names) -> list[tuple[str, Row]]:
        cells = self._width - len(names.t0s) - 1
        found = []
        for t1, (name, links) in enumerate(names.up.items()):
            tile = frame["evs"].get(f"{names.plane}/{t1}")
            row = [*(self._link(frame["links"][link]) for link in links), self._node(frame, name)]
            found.append((f"t1-{t1}", joined([*row, *(self._bar(tile, cells) if tile else ())])))
        for place in (LOCAL, HASHED):
            tile = frame["evs"].get(f"{names.plane}/{place}")
            if tile:
                found.append((place, [StyledText(" " * (len(names.t0s) + 1)), *self._bar(tile, cells)]))
        return found

    def _cells(self, frame: LiveFrame, names: _Names) -> list[tuple[str, Row]]:
        found: list[tuple[str, Row]] = []
        for group in range(len(names.t0s) if names.up else 0):
            links = [[self._link(frame["links"][up[group]])] for up in names.up.values()]
            found += _labelled(f"t0-{group}", _wrap(links, self._width))
        keys = [f"{names.plane}/{t1}" for t1 in (*range(len(names.up)), LOCAL, HASHED)]
        tiles = [[self._worst(frame["evs"][key])] for key in keys if key in frame["evs"]]
        return found + _labelled("EVs", _wrap(tiles, self._width))

    def _bar(self, tile: Mapping[str, int], cells: int) -> Row:
        numbers = shares(tuple(tile[state] for state in _EV_ORDER), cells)
        pairs = zip(_EV_ORDER, numbers, strict=True)
        return [StyledText(getattr(self._signs, state) * number, state) for state, number in pairs if number]

    def _worst(self, tile: Mapping[str, int]) -> StyledText:
        state = next(state for state in _WORST_FIRST if tile[state])
        return StyledText(getattr(self._signs, state), state)

    def _port(self, frame: LiveFrame, plane: int, host: str, link: str) -> StyledText:
        """The host's view takes precedence over the fault: a port is down until the host reports it."""
        state = frame["hosts"][host]["ports"][plane] if host in frame["hosts"] else "UP"
        if state == "DOWN":
            return StyledText(self._signs.broken, "bad")
        if state == "RISING":
            return StyledText(self._signs.rising, "skip")
        return self._link(frame["links"][link])

    def _link(self, link: Mapping[str, Any]) -> StyledText:
        if link["state"] != "up":
            return StyledText(getattr(self._signs, link["state"]), "bad" if link["state"] == "broken" else "skip")
        load, loads = max(link["load"]), self._signs.loads
        return StyledText(loads[min(len(loads) - 1, int(load * len(loads)))], "load" if load >= _BUSY else "idle")

    def _node(self, frame: LiveFrame, name: str) -> StyledText:
        state = frame["nodes"].get(name)
        return StyledText(getattr(self._signs, state), "bad") if state else StyledText(" ")


@lru_cache(maxsize=1024)
def shares(counts: tuple[int, ...], cells: int) -> tuple[int, ...]:
    """`cells` divided in proportion to `counts`, not all 0. Each non-zero count gets at least one cell, as far as they
    suffice."""
    present = [at for at, count in enumerate(counts) if count]
    total = sum(counts)
    wanted = {at: counts[at] * cells / total for at in present}
    numbers = [max(1, int(wanted[at])) if at in wanted else 0 for at in range(len(counts))]
    while sum(numbers) < cells:
        numbers[max(present, key=lambda at: wanted[at] - numbers[at])] += 1
    while sum(numbers) > cells:
        numbers[max(present, key=lambda at: (numbers[at] > 1, numbers[at] - wanted[at]))] -= 1
    return tuple(numbers)


def _wrap(pieces: Iterable[Row], width: int) -> list[Row]:
    """Characters in rows of `width`; a piece is broken only if it is longer than a row."""
    rows: list[Row] = [[]]
    for piece in pieces:
        if rows[-1] and len(rows[-1]) + len(piece) > width:
            rows.append([])
        rows[-1].extend(piece)
        while len(rows[-1]) > width:
            rows[-1:] = [rows[-1][:width], rows[-1][width:]]
    return [joined(row) for row in rows if row]


def _labelled(label: str, rows: Iterable[Row]) -> list[tuple[str, Row]]:
    return [(label if at == 0 else "", row) for at, row in enumerate(rows)]


def _side_by_side(cells: list[Row], width: int) -> Row:
    return [*(span for cell in cells[:-1] for span in padded(cell, width + 1)), *cells[-1]]


def _ceil(number: int, by: int) -> int:
    return -(-number // by)
