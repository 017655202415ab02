"""A fabric drawn for a terminal: planes as boxes side by side, hosts in a box below them."""

from __future__ import annotations

import textwrap

from mrc_testbed.topos import names
from mrc_testbed.topos.plan import Plan

MIN_WIDTH = 40
"""Minimum width of a useful drawing."""
_MAX_NAMES = 8
"""Names of one tier, or hosts of one group, that are drawn before the middle is replaced by an ellipsis."""
_MAX_GROUPS = 8
_CROSS = "\u2572\u2571"
_GAP = "  "
_EDGES = 4
"""Columns of a box besides its text."""


def drawing(plan: Plan, width: int = 100) -> str:
    """The planes as boxes (T1 row over T0 row) with the hosts below, in at most `width` columns.

    What does not fit is left out, with its number. Raises ValueError below MIN_WIDTH columns.
    """
    if width < MIN_WIDTH:
        raise ValueError(f"width: {width} columns are fewer than {MIN_WIDTH}")
    shown = _shown_planes(plan, width)
    planes = _plane_boxes(plan, shown, width)
    cables = [column for column, char in enumerate(planes[-1]) if char == "┬"]
    numbers = [plane for plane in shown if plane is not None]
    lines = [*planes, _port_labels(cables, numbers), *_host_box(plan, cables, len(planes[-1]), width)]
    return "\n".join(line.rstrip() for line in (*lines, *_legend(plan, None in shown, width)))


def _shown_planes(plan: Plan, width: int) -> list[int | None]:
    """Numbers of the drawn planes; None stands for those left out."""
    planes = plan.shape.planes
    pitch = _least_inside(plan) + _EDGES + len(_GAP)
    if planes <= (width + len(_GAP)) // pitch:
        return list(range(planes))
    beside_gap = (width - len(_note(planes))) // pitch
    return [*range(beside_gap - 1), None, planes - 1]


def _note(left_out: int) -> str:
    return f"+{left_out}"


def _plane_boxes(plan: Plan, shown: list[int | None], width: int) -> list[str]:
    left_out = plan.shape.planes - sum(plane is not None for plane in shown)
    note = _note(left_out)
    boxes = len(shown) - (None in shown)
    taken = len(_GAP) * (len(shown) - 1) + (len(note) if None in shown else 0)
    room = (width - taken) // boxes - _EDGES
    tiers = [_short(_tier(plan, plan.shape.planes - 1, tier)) for tier in (1, 0)]
    wanted = max(len("  ".join(row)) for row in tiers)
    inner = min(room, max(wanted, _least_inside(plan) + 1))
    drawn = [[note] if plane is None else _plane_box(plan, plane, inner) for plane in shown]
    height = max(len(box) for box in drawn)
    return [_GAP.join(row) for row in zip(*(_tall(box, height) for box in drawn), strict=True)]


def _plane_box(plan: Plan, plane: int, inner: int) -> list[str]:
    upper, lower = (_wrapped(_short(_tier(plan, plane, tier)), inner) for tier in (1, 0))
    cross = [_CROSS * max(inner // 4, 2)] if upper else []
    # The label of the cable stands to its right and must not pass the edge of the box.
    middle = min((inner + 2) // 2, inner + 3 - len(_port_label(plane)))
    return [
        "┌" + f"─ plane {plane} ".ljust(inner + 2, "─") + "┐",
        *(f"│ {row:^{inner}} │" for row in (*upper, *cross, *lower)),
        "└" + "─" * middle + "┬" + "─" * (inner + 1 - middle) + "┘",
    ]


def _tall(box: list[str], height: int) -> list[str]:
    """A box extended to `height`, so that planes are aligned for the links; a note about omitted ones is in the
    middle."""
    blank = " " * len(box[0])
    above = (height - len(box)) // (2 if len(box) == 1 else 1)
    return [*[blank] * above, *box, *[blank] * (height - len(box) - above)]


def _port_labels(cables: list[int], planes: list[int]) -> str:
    line = ""
    for column, plane in zip(cables, planes, strict=True):
        line = line.ljust(column) + _port_label(plane)
    return line


def _port_label(plane: int) -> str:
    return f"│ {names.port_of_plane(plane)}"


def _host_box(plan: Plan, cables: list[int], least: int, width: int) -> list[str]:
    rows = _host_rows(plan, width - _EDGES)
    inner = max(least - _EDGES, *(len(row) for row in rows))
    lid = list("┌" + "─" * (inner + 2) + "┐")
    for column in cables:
        lid[column] = "┴"
    return ["".join(lid), *(f"│ {row:<{inner}} │" for row in rows), "└" + "─ hosts ".ljust(inner + 2, "─") + "┘"]


def _host_rows(plan: Plan, room: int) -> list[str]:
    """A line per T0 group, without the middle ones if there are many."""
    groups = plan.shape.t0_groups
    if groups <= _MAX_GROUPS:
        return [_host_row(plan, group, room) for group in range(groups)]
    ends = [_host_row(plan, group, room) for group in (0, 1, groups - 1)]
    return [*ends[:2], f"+{groups - 3} more groups", ends[2]]


def _host_row(plan: Plan, group: int, room: int) -> str:
    found = [host.name for host in plan.hosts[group * plan.shape.hosts_per_t0 :][: plan.shape.hosts_per_t0]]
    label = f"group {group}".ljust(len(f"group {plan.shape.t0_groups - 1}"))
    row = "  ".join([label, *_short(found)])
    return row if len(row) <= room else f"{label}  {found[0]} ... {found[-1]}"


def _legend(plan: Plan, leaves_out: bool, width: int) -> list[str]:
    lines = ["A host has one port in every plane, to the T0 of its group there."]
    if plan.shape.t1:
        lines.append("Every T0 (lower rows) is linked to every T1 (upper rows) of its plane.")
    if leaves_out:
        lines.append("The number between the boxes counts the planes that are not drawn.")
    return [part for line in lines for part in textwrap.wrap(line, width)]


def _tier(plan: Plan, plane: int, tier: int) -> list[str]:
    count = plan.shape.t1 if tier else plan.shape.t0_groups
    return [names.switch_name(plane, tier, index) for index in range(count)]


def _least_inside(plan: Plan) -> int:
    """Columns for the longest switch name and the title of a box."""
    last = plan.shape.planes - 1
    longest = max(len(name) for tier in (0, 1) for name in _tier(plan, last, tier)[-1:])
    return max(longest, len(f"plane {last}") + 1)


def _short(found: list[str]) -> list[str]:
    if len(found) <= _MAX_NAMES:
        return found
    return [*found[:2], f"+{len(found) - 3} more", found[-1]]


def _wrapped(words: list[str], width: int) -> list[str]:
    """Words on as few lines as possible, evenly distributed."""
    if not words:
        return []
    most = max((width + 2) // (max(map(len, words)) + 2), 1)
    lines = -(-len(words) // most)
    each = -(-len(words) // lines)
    return ["  ".join(words[start : start + each]) for start in range(0, len(words), each)]
