"""A fabric drawn for a terminal: planes as boxes side by side, hosts in a box below them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mrc_testbed.topos import names
from mrc_testbed.topos.layout import Pod, TierPair, hosts_in_runs, joins, pods, title
from mrc_testbed.topos.plan import Plan

MIN_WIDTH = 40
"""Minimum width of a useful drawing."""
_MAX_NAMES = 8
"""Names of one tier, or hosts of one group, that are drawn before the middle is replaced by an ellipsis."""
_MAX_GROUPS = 8
_TWO_TIERS = 2
_MAX_PODS = 4
_TWO_NAMES = 2
"""Names of switches that a pod has room for in a row, if pods are drawn side by side."""
_BETWEEN_PODS = " │ "
_CROSS = "\u2572\u2571"
_GAP = "  "
_EDGES = 4
"""Columns of a box besides its text."""


def drawing(plan: Plan, width: int = 100) -> str:
    """The planes as boxes, each tier over the one below it, with the hosts at the bottom, in at most `width` columns.

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
    """Numbers of the drawn planes; None means those left out."""
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
    inner = min(room, max(_wanted(plan, plan.shape.planes - 1), _least_inside(plan) + 1))
    drawn = [[note] if plane is None else _plane_box(plan, plane, inner) for plane in shown]
    height = max(len(box) for box in drawn)
    return [_GAP.join(row) for row in zip(*(_tall(box, height) for box in drawn), strict=True)]


def _plane_box(plan: Plan, plane: int, inner: int) -> list[str]:
    # The label of the cable is to its right and must not pass the edge of the box.
    middle = min((inner + 2) // 2, inner + 3 - len(_port_label(plane)))
    return [
        "┌" + f"─ plane {plane} ".ljust(inner + 2, "─") + "┐",
        *(f"│ {row:^{inner}} │" for row in _switch_rows(plan, plane, inner)),
        "└" + "─" * middle + "┬" + "─" * (inner + 1 - middle) + "┘",
    ]


def _wanted(plan: Plan, plane: int) -> int:
    """Columns of a plane whose tiers have a row each, and whose pods are side by side."""
    parts = _shown_pods(pods(plan.shape.family))
    tiers = range(len(plan.shape.family.tiers))
    if not parts:
        return max(_natural(_tier(plan, plane, tier)) for tier in tiers)
    beside = [_pod_width(plane, pod) if isinstance(pod, Pod) else len(pod) for pod in parts]
    return max(_natural(_tier(plan, plane, tiers[-1])), sum(beside) + len(_BETWEEN_PODS) * (len(beside) - 1))


def _natural(found: list[str]) -> int:
    return len("  ".join(_short(found)))


def _pod_width(plane: int, pod: Pod) -> int:
    return max(_natural(_names(plane, tier, numbers)) for tier, numbers in enumerate(pod.tiers))


def _switch_rows(plan: Plan, plane: int, inner: int) -> list[str]:
    """The highest tier on top; below it the others, or the pods that they form."""
    parts = pods(plan.shape.family)
    top = len(plan.shape.family.tiers) - 1
    if not parts:
        return _stacked([_tier(plan, plane, tier) for tier in range(top, -1, -1)], inner)
    upper = _wrapped(_short(_tier(plan, plane, top)), inner)
    return [*upper, _CROSS * max(inner // 4, 2), *_pod_rows(plane, _shown_pods(parts), inner)]


def _stacked(tiers: list[list[str]], inner: int) -> list[str]:
    """Each tier over the one below it."""
    rows: list[str] = []
    for found in filter(None, tiers):
        rows += [_CROSS * max(inner // 4, 2)] if rows else []
        rows += _wrapped(_short(found), inner)
    return rows


def _shown_pods(parts: Sequence[Pod]) -> list[Pod | str]:
    if len(parts) <= _MAX_PODS:
        return list(parts)
    return [*parts[:2], f"+{len(parts) - 3} more pods", parts[-1]]


def _pod_rows(plane: int, parts: list[Pod | str], inner: int) -> list[str]:
    """Pods side by side if there is room for two names of each, else one below the other."""
    widest = max(_pod_width(plane, pod) for pod in parts if isinstance(pod, Pod))
    name = max(len(names.switch_name(plane, 0, pod.tiers[0][-1])) for pod in parts if isinstance(pod, Pod))
    note = sum(len(pod) for pod in parts if isinstance(pod, str))
    boxes = sum(isinstance(pod, Pod) for pod in parts)
    room = (inner - note - len(_BETWEEN_PODS) * (len(parts) - 1)) // boxes
    if room < min(widest, _TWO_NAMES * name + 2):
        return _below_each_other(plane, parts, inner)
    columns = [[pod] if isinstance(pod, str) else [f"{row:^{room}}" for row in _pod(plane, pod, room)] for pod in parts]
    height = max(map(len, columns))
    return [_BETWEEN_PODS.join(row) for row in zip(*(_tall(column, height) for column in columns), strict=True)]


def _below_each_other(plane: int, parts: list[Pod | str], inner: int) -> list[str]:
    rows: list[str] = []
    for pod in parts:
        rows += ["─" * inner] if rows else []
        rows += [pod] if isinstance(pod, str) else _pod(plane, pod, inner)
    return rows


def _pod(plane: int, pod: Pod, inner: int) -> list[str]:
    found = [_names(plane, tier, numbers) for tier, numbers in enumerate(pod.tiers)]
    return _stacked(found[::-1], inner)


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
    """A line per T0, without the middle ones if there are many."""
    groups = len(plan.shape.family.below)
    if groups <= _MAX_GROUPS:
        return [_host_row(plan, group, room) for group in range(groups)]
    ends = [_host_row(plan, group, room) for group in (0, 1, groups - 1)]
    return [*ends[:2], f"+{groups - 3} more groups", ends[2]]


def _host_row(plan: Plan, group: int, room: int) -> str:
    below = plan.shape.family.below
    found = [plan.hosts[host].name for host in below[group]]
    label = f"group {group}".ljust(len(f"group {len(below) - 1}"))
    row = "  ".join([label, *_short(found)])
    return row if len(row) <= room or not found else f"{label}  {found[0]} ... {found[-1]}"


def _legend(plan: Plan, leaves_out: bool, width: int) -> list[str]:
    family = plan.shape.family
    t0 = title(family, 0)
    lines = [f"A host has one port in every plane, to the {t0} of its group there."]
    if not hosts_in_runs(family):
        lines = [f"A host has one port in every plane, to the {t0} with the number of its group."]
    lines += [_linked(plan, join) for join in joins(family)]
    if leaves_out:
        lines.append("The number between the boxes counts the planes that are not drawn.")
    return [part for line in lines for part in textwrap.wrap(line, width)]


def _linked(plan: Plan, join: TierPair) -> str:
    """Every T0 (lower rows) is linked to every T1 (upper rows) of its plane."""
    family = plan.shape.family
    lower, upper = title(family, join.lower), title(family, join.upper)
    if len(family.tiers) == _TWO_TIERS and join.whole:
        return f"Every {lower} (lower rows) is linked to every {upper} (upper rows) of its plane."
    if join.whole:
        return f"Every {lower} is linked to every {upper} of its {'pod' if join.in_pods else 'plane'}."
    first = names.switch_name(0, *join.first)
    ups = [names.switch_name(0, *place) for place in join.uplinks]
    which = f"{ups[0]} ... {ups[-1]}" if len(ups) > _TWO_NAMES else " and ".join(ups)
    return f"A {lower} is linked to {len(ups)} of the {family.tiers[join.upper]} {upper}s, such as {first} to {which}."


def _tier(plan: Plan, plane: int, tier: int) -> list[str]:
    return _names(plane, tier, range(plan.shape.family.tiers[tier]))


def _names(plane: int, tier: int, numbers: Sequence[int]) -> list[str]:
    return [names.switch_name(plane, tier, number) for number in numbers]


def _least_inside(plan: Plan) -> int:
    """Columns for the longest switch name and the title of a box."""
    last = plan.shape.planes - 1
    tiers = range(len(plan.shape.family.tiers))
    longest = max(len(name) for tier in tiers for name in _tier(plan, last, tier)[-1:])
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
