"""A design as a picture: planes as layers, tiers of switches in the first of them, and the longest path. Pure.

Of many switches four are drawn: two below the left half of the network and two below the right. Halves meet in the
top tier alone, as the NICs that are farthest apart do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from markupsafe import Markup

from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.quantities import rate_words
from mrc_testbed.testbed.planner.pages.chart import short_count
from mrc_testbed.testbed.planner.pages.svg import WIDTH, colour, element, text

_CARD_X, _CARD_Y, _CARD = 118.0, 12.0, 190.0
"""The first plane, and its width."""
_PITCH, _BOX_W, _BOX_H = 58.0, 32.0, 20.0
_DEEP, _LAYER = 26.0, 4.0
"""All layers below the first one, and one of them at most."""
_NIC_W, _NIC_H, _NIC_GAP = 84.0, 30.0, 30.0
_PLACES = {1: (0.5,), 2: (0.15, 0.85), 3: (0.15, 0.5, 0.85), 4: (0.12, 0.33, 0.67, 0.88)}
"""Of the switches of a tier, in shares of the width, by how many are drawn."""
_MOST = 4
_WIDEST = 10_000_000
_ENDS = (0.17, 0.83)
"""Of the two NICs."""

Point = tuple[float, float]


def tiers_drawing(design: Design) -> Markup:
    """The design, or where it has no room for its GPUs the largest one of its kind."""
    clos = design.clos if design.clos.fits else replace(design.clos, nics=design.clos.most_nics)
    picture = _Picture(design, clos)
    parts = [*picture.layers(), *picture.lanes(), *picture.cables(), *picture.path()]
    parts += [*picture.switches(), *picture.nics(), *picture.labels()]
    return element(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {picture.height:g}", role="img", aria_label=described(design, clos)
    )


def described(design: Design, clos: Clos) -> str:
    """The picture in words."""
    counts = ", ".join(f"T{tier} {count:,}" for tier, count in enumerate(clos.tier_switches))
    return (
        f"{_planes(clos)} of {rate_words(design.port_gbps)}, switches by tier: {counts}; {clos.nics:,} NICs; the "
        f"longest path goes through {clos.longest_path}"
    )


def _planes(clos: Clos) -> str:
    return f"{clos.planes} plane{'s' if clos.planes > 1 else ''}"


@dataclass(frozen=True, slots=True)
class _Picture:
    design: Design
    clos: Clos

    @property
    def layer(self) -> float:
        """How far each plane lies behind the one before it."""
        return min(_LAYER, _DEEP / max(self.clos.planes - 1, 1))

    @property
    def card_height(self) -> float:
        return self.clos.tiers * _PITCH + 14

    @property
    def nic_y(self) -> float:
        return _CARD_Y + self.card_height + self.layer * (self.clos.planes - 1) + _NIC_GAP

    @property
    def height(self) -> float:
        return self.nic_y + _NIC_H + 20

    def tier_y(self, tier: int) -> float:
        """The middle of its switches."""
        return _CARD_Y + 26 + (self.clos.tiers - 1 - tier) * _PITCH

    def spots(self, tier: int) -> Sequence[Point]:
        """The switches of a tier that are drawn."""
        count = self.clos.tier_switches[tier] // self.clos.planes
        return [(_CARD_X + share * _CARD, self.tier_y(tier)) for share in _PLACES[min(count, _MOST)]]

    def layers(self) -> Iterator[Markup]:
        """The last plane first."""
        for plane in reversed(range(self.clos.planes)):
            place = {"x": _CARD_X + plane * self.layer, "y": _CARD_Y + plane * self.layer}
            size = {"width": _CARD, "height": self.card_height, "rx": 6.0}
            yield element("rect", **place, **size, class_="layer", style=self._of(plane))

    def _of(self, plane: int) -> str:
        return f"--of:{colour(plane)}"

    def _nic_x(self, end: float) -> float:
        """Of its middle."""
        return _CARD_X + end * _CARD

    def _port_x(self, end: float, plane: int) -> float:
        return self._nic_x(end) + ((plane + 0.5) / self.clos.planes - 0.5) * (_NIC_W - 8)

    def lanes(self) -> Iterator[Markup]:
        """From each port of a NIC to its plane; as thick as it has lanes."""
        lanes = self.design.nic_gbps // self.design.parts.lane_gbps // self.clos.planes
        for end, plane in product(_ENDS, range(self.clos.planes)):
            x, layer = self._port_x(end, plane), plane * self.layer
            top = _CARD_Y + self.card_height + layer
            width = min(1.2 * lanes, 8)
            yield element(
                "path",
                d=f"M{x:.1f} {self.nic_y:.1f}V{top:.1f}",
                class_="lane",
                style=self._of(plane),
                stroke_width=width,
            )
        for end, spot in zip(_ENDS, (self.spots(0)[0], self.spots(0)[-1]), strict=True):
            x, bottom = self._port_x(end, 0), _CARD_Y + self.card_height
            yield _line([(x, bottom), spot], "lane", self._of(0), min(1.2 * lanes, 8))

    def cables(self) -> Iterator[Markup]:
        """Between tiers, below the top one in each half."""
        for tier in range(self.clos.tiers - 1):
            low, high = self.spots(tier), self.spots(tier + 1)
            apart = tier + 1 < self.clos.tiers - 1 and len(low) == _MOST
            for (one, start), (other, end) in product(enumerate(low), enumerate(high)):
                if not apart or (one < _MOST // 2) == (other < _MOST // 2):
                    yield _line([start, end], "cable", self._of(0))

    def _path_spots(self) -> list[Point]:
        """The switches of the longest path, from left to right."""
        up = [self.spots(tier)[0] for tier in range(self.clos.tiers)]
        down = [self.spots(tier)[-1] for tier in reversed(range(self.clos.tiers - 1))]
        if self.clos.tiers > 1:
            middle = self.spots(self.clos.tiers - 1)
            up[-1] = middle[len(middle) // 2]
        return up + down

    def path(self) -> Iterator[Markup]:
        bottom = _CARD_Y + self.card_height
        begin, end = (self._port_x(share, 0) for share in _ENDS)
        way = [(begin, self.nic_y), (begin, bottom), *self._path_spots(), (end, bottom), (end, self.nic_y)]
        yield from (_line(leg, "path", "") for leg in pairwise(way))

    def switches(self) -> Iterator[Markup]:
        turns = {spot: turn for turn, spot in enumerate(self._path_spots(), 1)}
        for tier in range(self.clos.tiers):
            spots, count = self.spots(tier), self.clos.tier_switches[tier] // self.clos.planes
            if count > _MOST:
                yield text(_CARD_X + _CARD / 2, self.tier_y(tier) + 3, "\u2026", "more", "middle")
            for x, y in spots:
                turn = turns.get((x, y))
                box = {"x": x - _BOX_W / 2, "y": y - _BOX_H / 2, "width": _BOX_W, "height": _BOX_H, "rx": 4.0}
                yield element("rect", **box, class_="switch on" if turn else "switch", style=self._of(0))
                if turn:
                    yield text(x, y + 4, str(turn), "turn", "middle")

    def nics(self) -> Iterator[Markup]:
        lanes = self.design.nic_gbps // self.design.parts.lane_gbps
        for end in _ENDS:
            x, pitch = self._nic_x(end) - _NIC_W / 2, (_NIC_W - 8) / lanes
            yield element("rect", x=x, y=self.nic_y, width=_NIC_W, height=_NIC_H, rx=4, class_="nic")
            yield text(self._nic_x(end), self.nic_y + 22, f"NIC {rate_words(self.design.nic_gbps)}", "name", "middle")
            for lane in range(lanes):
                place = {"x": x + 4 + (lane + 0.1) * pitch, "y": self.nic_y - 2, "width": 0.8 * pitch, "height": 7.0}
                yield element("rect", **place, class_="port", style=self._of(lane * self.clos.planes // lanes))
        yield text(_CARD_X + _CARD / 2, self.nic_y + 20, "\u2026", "more", "middle")

    def labels(self) -> Iterator[Markup]:
        """Left of each tier what it is, and below all how a NIC is split."""
        clos = self.clos
        for tier, count in enumerate(clos.tier_switches):
            y = self.tier_y(tier) - 8
            yield text(0, y, f"T{tier}: {counted(count)}", "name strong")
            each = f"{clos.ports} down" if tier == clos.tiers - 1 else f"{clos.half} down, {clos.half} up"
            lines = [f"{clos.planes} planes x {count // clos.planes:,}", each] if clos.planes > 1 else [each]
            for number, said in enumerate(lines, 1):
                yield text(0, y + 14 * number, said, "tick")
        yield text(0, self.nic_y + 8, f"NICs: {counted(clos.nics)}", "name strong")
        yield text(0, self.nic_y + 22, f"{clos.planes} x {rate_words(self.design.port_gbps)} each", "tick")
        if clos.planes > 1:
            yield text(
                _CARD_X + 0.4 * _CARD, _CARD_Y + self.card_height - 5, f"plane 1 of {clos.planes}", "tick", "middle"
            )


def counted(count: int) -> str:
    """In the room beside a plane."""
    return f"{count:,}" if count < _WIDEST else short_count(count)


def _line(spots: Sequence[Point], class_: str, style: str, width: float = 0) -> Markup:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    extra: dict[str, str | float] = {"stroke_width": width} if width else {}
    return element("path", d=path, class_=class_, **({"style": style} if style else {}), **extra)
