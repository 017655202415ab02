"""A fabric as a self-contained SVG: T1 switches on top, T0 switches, hosts at the bottom, a colour for every plane.

No background is painted and no text outside a filled box is black or white, so it is readable on dark and on light
pages. Every link has its name as `data-link`, every node as `data-node`, for pages that show states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from mrc_testbed.topos import names
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.units import plural, rate_text, time_text

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")
"""Okabe and Ito's colours, distinct for colour-blind people, without the yellow, which is invisible on white."""
_WHITE_ON = {"#0072b2"}
_GREY = "#818b96"
_MAX_PLANES = 8
_FEW_PLANES = 4
"""Up to this many planes a page is wide enough for 8 switches of a tier in each, else for 4."""
_MARGIN, _PANEL_GAP = 10.0, 16.0
_NODE_PITCH, _NODE_HEIGHT, _SIDE = 50.0, 24.0, 4.0
_MIN_PANEL, _MIN_WIDTH = 208.0, 900.0
_TITLE_Y, _PANEL_Y, _T1_Y, _T0_Y, _T0_BOTTOM = 18.0, 32.0, 66.0, 176.0, 200.0
_HOST_HEIGHT, _PORT, _PORT_PITCH = 46.0, 9.0, 13.0
_LONG_LABEL = 320.0
_LETTERS_FROM_AFAR = 78.0
"""Letters of the name of a switch, times their size, that its box has room for."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """The place of a node: its name and the middle of its box. `number` is None for an ellipsis."""

    label: str
    number: int | None
    x: float


@dataclass(frozen=True, slots=True)
class _Panel:
    """A plane on the page. `plane` is None for an ellipsis."""

    plane: int | None
    left: float
    width: float

    @property
    def colour(self) -> str:
        return _COLOURS[(self.plane or 0) % len(_COLOURS)]

    @property
    def dash(self) -> str:
        """Planes beyond the number of colours have dashed lines."""
        turn = (self.plane or 0) // len(_COLOURS)
        return f' stroke-dasharray="{6 - 2 * turn} {1 + turn}"' if turn else ""


@dataclass(frozen=True, slots=True)
class _Page:
    """The layout of the page."""

    plan: Plan
    panels: list[_Panel]
    hosts: list[_Spot]
    width: float
    from_afar: bool

    @property
    def host_y(self) -> float:
        """Top of the hosts: wide pages have taller link areas."""
        return _T0_BOTTOM + self.width * 0.144

    @property
    def height(self) -> float:
        return self.host_y + _HOST_HEIGHT + 36

    @property
    def has_all_hosts(self) -> bool:
        return all(host.number is not None for host in self.hosts)

    def tier(self, panel: _Panel, tier: int) -> list[_Spot]:
        """The switches of a tier in a plane."""
        count = self.plan.shape.t1 if tier else self.plan.shape.t0_groups
        prefix = names.switch_name(panel.plane or 0, tier, 0)[:-1]
        return _spots(prefix, count, _max_switches(self.plan), panel.left + _SIDE, panel.width - 2 * _SIDE)

    def group_of(self, host: _Spot) -> int:
        """The T0 group of a host, -1 for an ellipsis."""
        return -1 if host.number is None else host.number // self.plan.shape.hosts_per_t0

    def port_x(self, host: _Spot, panel: _Panel) -> float:
        """The middle of the port that a host has in a plane."""
        return host.x + (self.panels.index(panel) - (len(self.panels) - 1) / 2) * _PORT_PITCH


def svg(plan: Plan, from_afar: bool = False) -> str:
    """The fabric as an SVG document, 900 wide up to four small planes; big ones are abbreviated. `from_afar`: to be
    read by a room: names as large as their boxes, and those of switches without their plane, which stands above."""
    page = _page(plan, from_afar)
    cables = (line for panel in page.panels for line in _cables(page, panel))
    boxes = (line for panel in page.panels for line in _panel(page, panel))
    return "\n".join([*_head(page), *cables, *boxes, *_hosts(page), *_group_names(page), "</svg>"]) + "\n"


def _page(plan: Plan, from_afar: bool) -> _Page:
    panels = _panels(plan)
    width = panels[-1].left + panels[-1].width + _MARGIN
    most_hosts = int((width - 2 * _MARGIN) // (_host_width(panels) + 8))
    hosts = _spots("h", plan.shape.hosts, most_hosts, _MARGIN, width - 2 * _MARGIN)
    return _Page(plan, panels, hosts, width, from_afar)


def _head(page: _Page) -> Iterator[str]:
    shape = page.plan.shape
    text = (
        f"{plural(shape.planes, 'plane')} of {shape.t0_groups} T0 and {shape.t1} T1 switches, "
        f"{plural(shape.hosts, 'host')}, {rate_text(shape.port_rate_bps)} a port, rtt {time_text(shape.rtt_ns)}"
    )
    size = f'viewBox="0 0 {page.width:g} {page.height:g}" width="{page.width:g}" height="{page.height:g}"'
    font = 'font-family="ui-sans-serif, Helvetica, Arial, sans-serif"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>'
    yield f"<title>{escape(text)}</title>"
    yield _text(page.width / 2, _TITLE_Y, text, 14, _GREY)


def _max_switches(plan: Plan) -> int:
    return 8 if plan.shape.planes <= _FEW_PLANES else 4


def _panels(plan: Plan) -> list[_Panel]:
    shown = _abbreviated(plan.shape.planes, _MAX_PLANES)
    widest = max(len(_abbreviated(count, _max_switches(plan))) for count in (plan.shape.t0_groups, plan.shape.t1))
    free = _MIN_WIDTH - 2 * _MARGIN - _PANEL_GAP * (len(shown) - 1)
    width = max(_MIN_PANEL, widest * _NODE_PITCH + 2 * _SIDE, free / len(shown))
    return [_Panel(plane, _MARGIN + turn * (width + _PANEL_GAP), width) for turn, plane in enumerate(shown)]


def _abbreviated(count: int, most: int) -> list[int | None]:
    """The numbers up to `count`, with one None in the middle if they are more than `most`."""
    if count <= most:
        return list(range(count))
    return [*range(most - 2), None, count - 1]


def _spots(prefix: str, count: int, most: int, left: float, width: float) -> list[_Spot]:
    shown = _abbreviated(count, most)
    pitch = width / max(len(shown), 1)
    left_out = f"+{count - most + 1}"
    return [
        _Spot(left_out if number is None else f"{prefix}{number}", number, left + pitch * (turn + 0.5))
        for turn, number in enumerate(shown)
    ]


def _cables(page: _Page, panel: _Panel) -> Iterator[str]:
    if panel.plane is None:
        return
    t1s = [spot for spot in page.tier(panel, 1) if spot.number is not None]
    style = f'stroke="{panel.colour}" fill="none" stroke-width="1.3"{panel.dash}'
    yield f'<g {style} stroke-opacity="0.8">'
    for t0 in page.tier(panel, 0):
        if t0.number is not None:
            for t1 in t1s:
                yield _line(t0.x, _T0_Y, t1.x, _T1_Y + _NODE_HEIGHT, names.link_name(t0.label, t1.label))
            for host in (host for host in page.hosts if page.group_of(host) == t0.number):
                link = names.link_name(host.label, t0.label)
                yield _curve(page.port_x(host, panel), page.host_y, t0.x, _T0_BOTTOM, link)
    yield "</g>"


def _panel(page: _Page, panel: _Panel) -> Iterator[str]:
    middle = panel.left + panel.width / 2
    if panel.plane is None:
        left_out = page.plan.shape.planes - _MAX_PLANES + 1
        yield _text(middle, (_T1_Y + _T0_BOTTOM) / 2, f"+{left_out} planes", 16, _GREY)
        return
    height = _T0_BOTTOM + 12 - _PANEL_Y
    place = f'x="{panel.left:.1f}" y="{_PANEL_Y:g}" width="{panel.width:.1f}" height="{height:g}"'
    line = f'stroke="{panel.colour}" stroke-opacity="0.55"{panel.dash}'
    yield f'<rect {place} rx="8" fill="{panel.colour}" fill-opacity="0.09" {line}/>'
    down, size = (22, 20) if page.from_afar else (20, 13)
    yield _text(middle, _PANEL_Y + down, f"plane {panel.plane}", size, _GREY, bold=True)
    for tier, top in ((1, _T1_Y), (0, _T0_Y)):
        for spot in page.tier(panel, tier):
            yield from _switch(spot, top, panel.colour, page.from_afar)


def _switch(spot: _Spot, top: float, colour: str, from_afar: bool) -> Iterator[str]:
    middle = top + _NODE_HEIGHT / 2 + (6 if from_afar else 4)
    if spot.number is None:
        yield _text(spot.x, middle, spot.label, 11, _GREY)
        return
    width = _NODE_PITCH - 4
    place = f'x="{spot.x - width / 2:.1f}" y="{top:g}" width="{width:g}" height="{_NODE_HEIGHT:g}"'
    shown = spot.label.partition("-")[2] if from_afar else spot.label
    usual = 10.5 if len(shown) < 8 else 8.5
    size = min(19.0, _LETTERS_FROM_AFAR / len(shown)) if from_afar else usual
    label = _text(spot.x, middle, shown, size, "#fff" if colour in _WHITE_ON else "#111")
    yield f'<g data-node="{spot.label}"><rect {place} rx="4" fill="{colour}"/>{label}</g>'


def _host_width(panels: list[_Panel]) -> float:
    return max(len(panels) * _PORT_PITCH + 12, 44)


def _hosts(page: _Page) -> Iterator[str]:
    width = _host_width(page.panels)
    top = page.host_y
    for host in page.hosts:
        if host.number is None:
            yield _text(host.x, top + 29, f"{host.label} hosts", 12, _GREY)
            continue
        place = f'x="{host.x - width / 2:.1f}" y="{top:g}" width="{width:g}" height="{_HOST_HEIGHT:g}"'
        yield f'<g data-node="{host.label}"><rect {place} rx="5" fill="{_GREY}" fill-opacity="0.14" stroke="{_GREY}"/>'
        yield from (_port(page, host, panel) for panel in page.panels if panel.plane is not None)
        down, size = (35, 22) if page.from_afar else (33, 14)
        yield _text(host.x, top + down, host.label, size, _GREY, bold=True) + "</g>"


def _port(page: _Page, host: _Spot, panel: _Panel) -> str:
    left = page.port_x(host, panel) - _PORT / 2
    return f'<rect x="{left:.1f}" y="{page.host_y:g}" width="{_PORT:g}" height="{_PORT:g}" fill="{panel.colour}"/>'


def _group_names(page: _Page) -> Iterator[str]:
    for group in sorted({page.group_of(host) for host in page.hosts} - {-1}):
        spots = [host.x for host in page.hosts if page.group_of(host) == group]
        label = f"group {group}"
        if page.has_all_hosts and page.width / page.plan.shape.t0_groups > _LONG_LABEL:
            label = f"hosts of group {group}: one port to p*-t0-{group} in every plane"
        yield _text((spots[0] + spots[-1]) / 2, page.host_y + _HOST_HEIGHT + 22, label, 12, _GREY)


def _line(x: float, y: float, to_x: float, to_y: float, link: str) -> str:
    return f'<path data-link="{link}" d="M{x:.1f} {y:g}L{to_x:.1f} {to_y:g}"/>'


def _curve(x: float, y: float, to_x: float, to_y: float, link: str) -> str:
    """A link with vertical ends, so that many links stay distinct at their ends."""
    bend = (y - to_y) * 0.55
    way = f"M{x:.1f} {y:g}C{x:.1f} {y - bend:g} {to_x:.1f} {to_y + bend:g} {to_x:.1f} {to_y:g}"
    return f'<path data-link="{link}" d="{way}"/>'


def _text(x: float, y: float, text: str, size: float, colour: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    attributes = f'x="{x:.1f}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="middle"{weight}'
    return f"<text {attributes}>{escape(text)}</text>"
