"""The planes of a fabric as columns of a terminal: host ports, links between switches, EVs by switch. Pure.

With enough room each switch above the T0s has a row with its links to those below it and a bar of its EVs; else each
switch with links up has wrapped rows of them, a character each, or all of a tier have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
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
    """The parts of a plane. `ports`: by T0 the hosts below it, each with its link; `down`, `up`: by switch its links to
    those below and above it, the highest tier first."""

    plane: int
    t0s: tuple[str, ...]
    ports: tuple[tuple[tuple[str, str], ...], ...]
    down: dict[str, tuple[str, ...]]
    up: dict[str, tuple[str, ...]]


def _names(plan: Plan, plane: int) -> _Names:
    below = plan.shape.family.below
    t0s = tuple(switch_name(plane, 0, group) for group in range(len(below)))
    hosts = [[plan.hosts[host].name for host in found] for found in below]
    ports = tuple(tuple((host, link_name(host, t0)) for host in found) for t0, found in zip(t0s, hosts, strict=True))
    links = [link for link in plan.links if link.plane == plane and not link.is_host_link] if len(t0s) > 1 else []
    down: dict[str, list[str]] = {}
    up: dict[str, list[str]] = {}
    for link in links:
        down.setdefault(link.far.node, []).append(link.name)
        up.setdefault(link.near.node, []).append(link.name)
    order = [switch.name for switch in sorted(plan.switches, key=lambda switch: -switch.tier)]
    by_switch = ({name: tuple(own[name]) for name in order if name in own} for own in (down, up))
    return _Names(plane, t0s, ports, *by_switch)


def _short(switch: str) -> str:
    """`t1-3`: without its plane."""
    return switch.partition("-")[2]


class PlanePanel:
    """Draws the planes of `plan`. `detailed`: a switch has its own row, if `width` and `rows` suffice. `banks`: which
    planes are side by side."""

    def __init__(self, plan: Plan, signs: Signs, width: int, rows: int) -> None:
        planes = plan.shape.planes
        most = max(1, (width - LABELS + 1) // _DENSE_COLUMNS)
        in_a_row = _ceil(planes, _ceil(planes, most))
        self.banks = [range(at, min(at + in_a_row, planes)) for at in range(0, planes, in_a_row)]
        self._names = [_names(plan, plane) for plane in range(planes)]
        self._signs = signs
        self._width = min(_WIDEST, max(_DENSE_COLUMNS, (width - LABELS + 1) // in_a_row) - 1)
        self._columns = max(map(len, self._names[0].down.values()), default=1)
        self.detailed = self._width > self._columns + _SHORTEST_BAR and self._detailed_rows() <= rows

        self._tier_by_tier = not self.detailed and self._dense_rows() > rows

    def _detailed_rows(self) -> int:
        return len(self.banks) * (self._port_rows() + len(self._names[0].down) + 2)

    def _dense_rows(self) -> int:
        """With a row or more for each switch."""
        switches = sum(_ceil(len(links), self._width) for links in self._names[0].up.values())
        return len(self.banks) * (1 + self._port_rows() + switches + 1)

    def _port_rows(self) -> int:
        pieces = [[StyledText(" ")] * (1 + len(hosts)) for hosts in self._names[0].ports]
        return len(_wrap(pieces, self._width))

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
        cells = self._width - self._columns - 1
        found = []
        for name, links in names.down.items():
            short = _short(name)
            tile = frame["evs"].get(f"{names.plane}/{short}")
            row = [*(self._link(frame["links"][link]) for link in links), self._node(frame, name)]
            row += [StyledText(" " * (self._columns - len(links)))] if len(links) < self._columns else []
            found.append((short, joined([*row, *(self._bar(tile, cells) if tile else ())])))
        for place in (LOCAL, HASHED):
            tile = frame["evs"].get(f"{names.plane}/{place}")
            if tile:
                found.append((place, [StyledText(" " * (self._columns + 1)), *self._bar(tile, cells)]))
        return found

    def _cells(self, frame: LiveFrame, names: _Names) -> list[tuple[str, Row]]:
        shown = {_short(name): [self._link(frame["links"][up]) for up in links] for name, links in names.up.items()}
        found: list[tuple[str, Row]] = []
        if self._tier_by_tier:
            for tier, switches in groupby(shown, key=lambda short: short.partition("-")[0]):
                found += _labelled(tier, _wrap([shown[short] for short in switches], self._width))
        else:
            for short, links in shown.items():
                found += _labelled(short, _wrap([[link] for link in links], self._width))
        keys = [f"{names.plane}/{place}" for place in (*(_short(name) for name in names.down), LOCAL, HASHED)]
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
