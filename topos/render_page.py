"""Where the parts of a fabric are on the page of its drawing: a panel a plane, a row a tier, pods side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mrc_testbed.topos import names
from mrc_testbed.topos.layout import Pod, pods
from mrc_testbed.topos.plan import Plan

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")
"""Okabe and Ito's colours, distinct for colour-blind people, without the yellow, which is invisible on white."""
MAX_PLANES = 8
PANEL_Y = 32.0
NODE_PITCH, NODE_HEIGHT = 50.0, 24.0
HOST_HEIGHT, PORT_PITCH = 46.0, 13.0
POD_LABEL = 16.0
"""Height of the name of a pod, below its T0s."""
_FEW_PLANES = 4
"""Up to this many planes a page is wide enough for 8 switches of a tier in each, else for 4; with pods, a page of two
planes for 16."""
_MARGIN, _PANEL_GAP, _POD_GAP, _SIDE = 10.0, 16.0, 14.0, 4.0
_MIN_PANEL, _MIN_WIDTH = 208.0, 900.0
_TOP_Y, _TWO_TIERS, _TIER_PITCH, _CLOSE_PITCH = 66.0, 2, 110.0, 92.0
_ENDS = 3
"""First, ellipsis, last: what is left of many."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a node: its name and the middle of its box. `number` is None for an ellipsis."""

    label: str
    number: int | None
    x: float


@dataclass(frozen=True, slots=True)
class PlaneBox:
    """A plane on the page. `plane` is None for an ellipsis."""

    plane: int | None
    left: float
    width: float

    @property
    def colour(self) -> str:
        """Of its switches and links."""
        return COLOURS[(self.plane or 0) % len(COLOURS)]

    @property
    def dash(self) -> str:
        """Planes beyond the number of colours have dashed lines."""
        turn = (self.plane or 0) // len(COLOURS)
        return f' stroke-dasharray="{6 - 2 * turn} {1 + turn}"' if turn else ""


@dataclass(frozen=True, slots=True)
class PodBox:
    """A pod in a panel. `pod` is None for an ellipsis; `columns`: of switches."""

    label: str
    pod: Pod | None
    columns: int
    left: float = 0.0
    width: float = 0.0


@dataclass(frozen=True)
class Page:
    """The layout of the page."""

    plan: Plan
    panels: list[PlaneBox]
    hosts: list[Spot]
    width: float
    from_afar: bool

    @cached_property
    def tiers(self) -> range:
        """Rows of switches; there is room for at least two."""
        return range(max(_TWO_TIERS, len(self.plan.shape.family.tiers)))

    def top_of(self, tier: int) -> float:
        """Top of the boxes of a tier."""
        pitch = _TIER_PITCH if len(self.tiers) == _TWO_TIERS else _CLOSE_PITCH
        return _TOP_Y + pitch * (len(self.tiers) - 1 - tier)

    @cached_property
    def t0_bottom(self) -> float:
        """Where cables to hosts begin."""
        return self.top_of(0) + NODE_HEIGHT

    @cached_property
    def panel_bottom(self) -> float:
        """Lower edge of the planes."""
        return self.t0_bottom + 12 + bool(self.parts) * POD_LABEL

    @property
    def host_y(self) -> float:
        """Top of the hosts: wide pages have taller link areas."""
        return self.t0_bottom + bool(self.parts) * POD_LABEL + self.width * 0.144

    @property
    def height(self) -> float:
        """Of the page."""
        return self.host_y + HOST_HEIGHT + 36

    @property
    def has_all_hosts(self) -> bool:
        """No host is left out."""
        return all(host.number is not None for host in self.hosts)

    @cached_property
    def parts(self) -> list[PodBox]:
        """The pods of a plane, without places."""
        return _pod_boxes(self.plan)

    def pod_boxes(self, panel: PlaneBox) -> list[PodBox]:
        """The pods of a panel, from left to right."""
        columns = sum(box.columns for box in self.parts)
        pitch = (panel.width - 2 * _SIDE - _POD_GAP * (len(self.parts) - 1)) / max(columns, 1)
        found, left = [], panel.left + _SIDE
        for box in self.parts:
            found.append(PodBox(box.label, box.pod, box.columns, left, pitch * box.columns))
            left += pitch * box.columns + _POD_GAP
        return found

    def tier(self, panel: PlaneBox, tier: int) -> list[Spot]:
        """The switches of a tier in a plane."""
        family = self.plan.shape.family
        prefix = names.switch_name(panel.plane or 0, tier, 0)[:-1]
        if not self.parts or tier == len(family.tiers) - 1:
            numbers = range(family.tiers[tier] if tier < len(family.tiers) else 0)
            return _spots(prefix, numbers, _max_switches(self.plan), panel.left + _SIDE, panel.width - 2 * _SIDE)
        boxes = [(box, box.pod) for box in self.pod_boxes(panel)]
        return [
            spot
            for box, pod in boxes
            if pod
            for spot in _spots(prefix, pod.tiers[tier], box.columns, box.left, box.width)
        ]

    def group_of(self, host: Spot) -> int:
        """The T0 group of a host, -1 for an ellipsis."""
        return -1 if host.number is None else self.plan.hosts[host.number].group

    def port_x(self, host: Spot, panel: PlaneBox) -> float:
        """The middle of the port that a host has in a plane."""
        return host.x + (self.panels.index(panel) - (len(self.panels) - 1) / 2) * PORT_PITCH


def page_of(plan: Plan, from_afar: bool) -> Page:
    """900 wide up to four small planes."""
    panels = _panels(plan)
    width = panels[-1].left + panels[-1].width + _MARGIN
    most_hosts = int((width - 2 * _MARGIN) // (host_width(panels) + 8))
    hosts = _spots("h", range(plan.shape.hosts), most_hosts, _MARGIN, width - 2 * _MARGIN)
    return Page(plan, panels, hosts, width, from_afar)


def host_width(panels: list[PlaneBox]) -> float:
    """Of the box of a host, which has a port in each panel."""
    return max(len(panels) * PORT_PITCH + 12, 44)


def _max_switches(plan: Plan) -> int:
    if plan.shape.planes <= _TWO_TIERS and pods(plan.shape.family):
        return 16
    return 8 if plan.shape.planes <= _FEW_PLANES else 4


def _panels(plan: Plan) -> list[PlaneBox]:
    shown = _abbreviated(range(plan.shape.planes), MAX_PLANES)
    widest = _widest(plan)
    free = _MIN_WIDTH - 2 * _MARGIN - _PANEL_GAP * (len(shown) - 1)
    width = max(_MIN_PANEL, widest + 2 * _SIDE, free / len(shown))
    return [PlaneBox(plane, _MARGIN + turn * (width + _PANEL_GAP), width) for turn, plane in enumerate(shown)]


def _widest(plan: Plan) -> float:
    """Width of what is broadest in a plane: a tier, or all pods."""
    tiers, boxes = plan.shape.family.tiers, _pod_boxes(plan)
    across = tiers[-1:] if boxes else tiers
    switches = max(len(_abbreviated(range(count), _max_switches(plan))) for count in across)
    in_pods = sum(box.columns for box in boxes) * NODE_PITCH + max(len(boxes) - 1, 0) * _POD_GAP
    return max(switches * NODE_PITCH, in_pods)


def _pod_boxes(plan: Plan) -> list[PodBox]:
    """All pods with all switches, or as few of either as there is room for."""
    parts = pods(plan.shape.family)
    if not parts:
        return []
    most = max(len(numbers) for pod in parts for numbers in pod.tiers)
    for shown, in_a_pod in ((len(parts), most), (_ENDS, most), (len(parts), _ENDS)):
        found = _boxes(parts, shown, in_a_pod)
        if sum(box.columns for box in found) <= _max_switches(plan):
            return found
    return _boxes(parts, _ENDS, _ENDS)


def _boxes(parts: Sequence[Pod], most: int, in_a_pod: int) -> list[PodBox]:
    found = []
    for number in _abbreviated(range(len(parts)), most):
        if number is None:
            found.append(PodBox(f"+{len(parts) - most + 1} pods", None, 1))
        else:
            columns = min(in_a_pod, max(map(len, parts[number].tiers)))
            found.append(PodBox(f"pod {number}", parts[number], columns))
    return found


def _abbreviated(numbers: Sequence[int], most: int) -> list[int | None]:
    """The numbers, with one None in the middle if they are more than `most`."""
    if len(numbers) <= most:
        return list(numbers)
    return [*numbers[: most - 2], None, numbers[-1]]


def _spots(prefix: str, numbers: Sequence[int], most: int, left: float, width: float) -> list[Spot]:
    shown = _abbreviated(numbers, most)
    pitch = width / max(len(shown), 1)
    left_out = f"+{len(numbers) - most + 1}"
    return [
        Spot(left_out if number is None else f"{prefix}{number}", number, left + pitch * (turn + 0.5))
        for turn, number in enumerate(shown)
    ]
