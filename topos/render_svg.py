"""A fabric as a self-contained SVG: the highest tier on top, T0 switches below, hosts at the bottom, a colour for every
plane.

No background is painted and no text outside a filled box is black or white, so it is readable on dark and on light
pages. Every link has its name as `data-link`, every node as `data-node`, for pages that show states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape

from mrc_testbed.topos import names
from mrc_testbed.topos.layout import hosts_in_runs, switches_text
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.render_page import (
    HOST_HEIGHT,
    MAX_PLANES,
    NODE_HEIGHT,
    NODE_PITCH,
    PANEL_Y,
    POD_LABEL,
    Page,
    PlaneBox,
    PodBox,
    Spot,
    host_width,
    page_of,
)
from mrc_testbed.topos.units import plural, rate_text, time_text

_WHITE_ON = {"#0072b2"}
_GREY = "#818b96"
_TITLE_Y = 18.0
_PORT = 9.0
_LONG_LABEL = 320.0
_LETTERS_FROM_AFAR = 78.0
"""Letters of the name of a switch, times their size, that its box has room for."""
_ABOVE_POD = 8.0


def svg(plan: Plan, from_afar: bool = False) -> str:
    """The fabric as an SVG document, 900 wide up to four small planes; big ones are abbreviated. `from_afar`: to be
    read by a room: names as large as their boxes, and those of switches without their plane, which is named above."""
    page = page_of(plan, from_afar)
    cables = (line for panel in page.panels for line in _cables(page, panel))
    boxes = (line for panel in page.panels for line in _panel(page, panel))
    return "\n".join([*_head(page), *cables, *boxes, *_hosts(page), *_group_names(page), "</svg>"]) + "\n"


def _head(page: Page) -> Iterator[str]:
    shape = page.plan.shape
    text = (
        f"{plural(shape.planes, 'plane')} of {switches_text(shape.family)}, "
        f"{plural(shape.hosts, 'host')}, {rate_text(shape.port_rate_bps)} a port, rtt {time_text(shape.rtt_ns)}"
    )
    size = f'viewBox="0 0 {page.width:g} {page.height:g}" width="{page.width:g}" height="{page.height:g}"'
    font = 'font-family="ui-sans-serif, Helvetica, Arial, sans-serif"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>'
    yield f"<title>{escape(text)}</title>"
    yield _text(page.width / 2, _TITLE_Y, text, 14, _GREY)


def _cables(page: Page, panel: PlaneBox) -> Iterator[str]:
    if panel.plane is None:
        return
    style = f'stroke="{panel.colour}" fill="none" stroke-width="1.3"{panel.dash}'
    yield f'<g {style} stroke-opacity="0.8">'
    shown = [[spot for spot in page.tier(panel, tier) if spot.number is not None] for tier in page.tiers]
    linked = page.plan.link_by_name
    for t0 in shown[0]:
        yield from _up(page, t0, 0, shown, linked)
        for host in (host for host in page.hosts if page.group_of(host) == t0.number):
            link = names.link_name(host.label, t0.label)
            yield _curve(page.port_x(host, panel), page.host_y, t0.x, page.t0_bottom, link)
    for tier in page.tiers[1:]:
        for spot in shown[tier]:
            yield from _up(page, spot, tier, shown, linked)
    yield "</g>"


def _up(page: Page, spot: Spot, tier: int, shown: list[list[Spot]], linked: Mapping[str, Link]) -> Iterator[str]:
    """The links of a switch to those above it."""
    for upper in page.tiers[tier + 1 :]:
        for other in shown[upper]:
            link = linked.get(names.link_name(spot.label, other.label))
            if link:
                thin = link.rate_bps < page.plan.shape.port_rate_bps
                yield _line(spot.x, page.top_of(tier), other.x, page.top_of(upper) + NODE_HEIGHT, link.name, thin)


def _panel(page: Page, panel: PlaneBox) -> Iterator[str]:
    middle = panel.left + panel.width / 2
    if panel.plane is None:
        left_out = page.plan.shape.planes - MAX_PLANES + 1
        yield _text(middle, (page.top_of(page.tiers[-1]) + page.t0_bottom) / 2, f"+{left_out} planes", 16, _GREY)
        return
    height = page.panel_bottom - PANEL_Y
    place = f'x="{panel.left:.1f}" y="{PANEL_Y:g}" width="{panel.width:.1f}" height="{height:g}"'
    line = f'stroke="{panel.colour}" stroke-opacity="0.55"{panel.dash}'
    yield f'<rect {place} rx="8" fill="{panel.colour}" fill-opacity="0.09" {line}/>'
    down, size = (22, 20) if page.from_afar else (20, 13)
    yield _text(middle, PANEL_Y + down, f"plane {panel.plane}", size, _GREY, bold=True)
    for box in page.pod_boxes(panel):
        yield from _pod(page, box, panel)
    for tier in reversed(page.tiers):
        for spot in page.tier(panel, tier):
            yield from _switch(spot, page.top_of(tier), panel.colour, page.from_afar)


def _pod(page: Page, box: PodBox, panel: PlaneBox) -> Iterator[str]:
    """A frame around the switches of a pod, and its name between two of its T0s, where no cable is."""
    top = page.top_of(page.tiers[-2]) - _ABOVE_POD
    middle = box.left + box.width / 2
    if box.pod is None:
        yield _text(middle, (top + page.t0_bottom) / 2, box.label, 12, _GREY)
        return
    place = f'x="{box.left:.1f}" y="{top:g}" width="{box.width:.1f}" height="{page.t0_bottom + POD_LABEL + 4 - top:g}"'
    line = f'stroke="{panel.colour}" stroke-opacity="0.55"{panel.dash}'
    yield f'<rect {place} rx="6" fill="none" {line}/>'
    t0s = min(box.columns, len(box.pod.tiers[0]))
    beside = box.width / t0s / 2 if t0s % 2 else 0
    size = 15 if page.from_afar else 12
    yield _text(middle + beside, page.t0_bottom + POD_LABEL - 1, box.label, size, _GREY)


def _switch(spot: Spot, top: float, colour: str, from_afar: bool) -> Iterator[str]:
    middle = top + NODE_HEIGHT / 2 + (6 if from_afar else 4)
    if spot.number is None:
        yield _text(spot.x, middle, spot.label, 11, _GREY)
        return
    width = NODE_PITCH - 4
    place = f'x="{spot.x - width / 2:.1f}" y="{top:g}" width="{width:g}" height="{NODE_HEIGHT:g}"'
    shown = spot.label.partition("-")[2] if from_afar else spot.label
    usual = 10.5 if len(shown) < 8 else 8.5
    size = min(19.0, _LETTERS_FROM_AFAR / len(shown)) if from_afar else usual
    label = _text(spot.x, middle, shown, size, "#fff" if colour in _WHITE_ON else "#111")
    yield f'<g data-node="{spot.label}"><rect {place} rx="4" fill="{colour}"/>{label}</g>'


def _hosts(page: Page) -> Iterator[str]:
    width = host_width(page.panels)
    top = page.host_y
    for host in page.hosts:
        if host.number is None:
            yield _text(host.x, top + 29, f"{host.label} hosts", 12, _GREY)
            continue
        place = f'x="{host.x - width / 2:.1f}" y="{top:g}" width="{width:g}" height="{HOST_HEIGHT:g}"'
        yield f'<g data-node="{host.label}"><rect {place} rx="5" fill="{_GREY}" fill-opacity="0.14" stroke="{_GREY}"/>'
        yield from (_port(page, host, panel) for panel in page.panels if panel.plane is not None)
        down, size = (35, 22) if page.from_afar else (33, 14)
        yield _text(host.x, top + down, host.label, size, _GREY, bold=True) + "</g>"


def _port(page: Page, host: Spot, panel: PlaneBox) -> str:
    left = page.port_x(host, panel) - _PORT / 2
    return f'<rect x="{left:.1f}" y="{page.host_y:g}" width="{_PORT:g}" height="{_PORT:g}" fill="{panel.colour}"/>'


def _group_names(page: Page) -> Iterator[str]:
    """Below the hosts, if those of a T0 are beside each other; else the names of nodes."""
    if not hosts_in_runs(page.plan.shape.family):
        yield from _nodes(page)
        return
    for group in sorted({page.group_of(host) for host in page.hosts} - {-1}):
        spots = [host.x for host in page.hosts if page.group_of(host) == group]
        label = f"group {group}"
        if page.has_all_hosts and page.width / page.plan.shape.family.tiers[0] > _LONG_LABEL:
            label = f"hosts of group {group}: one port to p*-t0-{group} in every plane"
        yield _text((spots[0] + spots[-1]) / 2, page.host_y + HOST_HEIGHT + 22, label, 12, _GREY)


def _nodes(page: Page) -> Iterator[str]:
    """A line below the NICs of each node, which are hosts, and its name."""
    nics, half = page.plan.shape.family.nics, host_width(page.panels) / 2
    below = page.host_y + HOST_HEIGHT + 7
    for node in sorted({host.number // nics for host in page.hosts if nics > 1 and host.number is not None}):
        spots = [host.x for host in page.hosts if host.number is not None and host.number // nics == node]
        way = f"M{spots[0] - half:.1f} {below:g}H{spots[-1] + half:.1f}"
        yield f'<path d="{way}" stroke="{_GREY}" stroke-width="2"/>'
        yield _text((spots[0] + spots[-1]) / 2, below + 17, f"node {node}", 12, _GREY)


def _line(x: float, y: float, to_x: float, to_y: float, link: str, thin: bool) -> str:
    """`thin`: a link with less than the rate of a port."""
    width = ' stroke-width="0.6"' if thin else ""
    return f'<path data-link="{link}" d="M{x:.1f} {y:g}L{to_x:.1f} {to_y:g}"{width}/>'


def _curve(x: float, y: float, to_x: float, to_y: float, link: str) -> str:
    """A link with vertical ends, so that many links stay distinct at their ends."""
    bend = (y - to_y) * 0.55
    way = f"M{x:.1f} {y:g}C{x:.1f} {y - bend:g} {to_x:.1f} {to_y + bend:g} {to_x:.1f} {to_y:g}"
    return f'<path data-link="{link}" d="{way}"/>'


def _text(x: float, y: float, text: str, size: float, colour: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    attributes = f'x="{x:.1f}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="middle"{weight}'
    return f"<text {attributes}>{escape(text)}</text>"
