"""Classes of targets: words such as `T0-T1 links` or `rail 2`, and the names in a plan that each means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.topos.graph import MAX_TIERS
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan

Names = Callable[[Plan], list[str]]
_RAIL = re.compile(r"rail (0|[1-9]\d*)", re.ASCII)


def _links(lower: int) -> Names:
    """Those between two tiers that follow each other."""

    def found(plan: Plan) -> list[str]:
        return [link.name for link in plan.links if _tiers(link, plan) == (lower, lower + 1)]

    return found


def _tiers(link: Link, plan: Plan) -> tuple[int, int]:
    """Of both ends, the lower first; -1 for a host."""
    ends = (plan.switch_by_name.get(end.node) for end in link.ends)
    lower, upper = sorted(-1 if switch is None else switch.tier for switch in ends)
    return lower, upper


def _switches(tier: int) -> Names:
    return lambda plan: [switch.name for switch in plan.switches if switch.tier == tier]


def _uplinks(plan: Plan) -> list[str]:
    """The paths of each plane between T0s, by their numbers; with two tiers and where switches choose by their T1."""
    tiers = plan.shape.family.tiers
    if tiers[0] == 1:
        return []
    if len(tiers) == 2 or not plan.by_usid:
        return _switches(1)(plan)
    ways = range(plan.shape.family.most_ways())
    return [f"p{plane}/u{number}" for plane in range(plan.shape.planes) for number in ways]


_LINK_CLASSES = {f"T{tier}-T{tier + 1} links": _links(tier) for tier in range(MAX_TIERS - 1)}
_SWITCH_CLASSES = {f"T{tier} switches": _switches(tier) for tier in range(MAX_TIERS)}
CLASSES: Mapping[str, Names] = {
    "links": lambda plan: [link.name for link in plan.links],
    "NIC links": lambda plan: [link.name for link in plan.links if link.is_host_link],
    **_LINK_CLASSES,
    "switches": lambda plan: [switch.name for switch in plan.switches],
    **_SWITCH_CLASSES,
    "hosts": lambda plan: [host.name for host in plan.hosts],
    "planes": lambda plan: [f"p{plane}" for plane in range(plan.shape.planes)],
    "uplinks": _uplinks,
}
"""Classes of targets by their words. Beside them `rail 2`, where hosts are NICs of nodes."""

FITTING: Mapping[Target, tuple[str, ...]] = {
    Target.LINK: ("links", "NIC links", *_LINK_CLASSES),
    Target.NIC_LINK: ("NIC links",),
    Target.SWITCH: ("switches", *_SWITCH_CLASSES),
    Target.T0: ("T0 switches",),
    Target.HOST: ("hosts",),
    Target.PLANE: ("planes",),
    Target.UPLINK: ("uplinks",),
    Target.PATH: ("planes", "uplinks", *list(_SWITCH_CLASSES)[1:]),
}
"""The classes allowed for a kind of target; together they cover all targets."""
_OF_RAILS = (Target.LINK, Target.NIC_LINK, Target.SWITCH, Target.T0)


def is_class(what: str) -> bool:
    """True for the words of a class."""
    return what in CLASSES or _RAIL.fullmatch(what) is not None


def meant_by(text: str) -> list[str]:
    """The classes that a wrong word may mean: those of T2s and above only if it has such a number."""
    higher = any(str(tier) in text for tier in range(2, MAX_TIERS))
    return [word for word in CLASSES if higher or not any(f"T{tier}" in word for tier in range(2, MAX_TIERS))]


def allowed(target: Target, plan: Plan) -> list[str]:
    """The classes for a kind of target that this fabric has any of; all of them if it has none."""
    return [word for word in FITTING[target] if CLASSES[word](plan)] or list(FITTING[target])


def members(what: str, target: Target, plan: Plan) -> list[str] | None:
    """The targets of a class in plan order; None if it is not one for this kind of target."""
    rail = _RAIL.fullmatch(what)
    if rail is None:
        return CLASSES[what](plan) if what in FITTING[target] else None
    return _of_rail(int(rail[1]), target, plan) if target in _OF_RAILS else None


def _of_rail(number: int, target: Target, plan: Plan) -> list[str]:
    """The T0s of the NICs of this number in every plane, or their links."""
    family = plan.shape.family
    if not number < family.nics > 1:
        return []
    groups = {family.t0_of(host) for host in range(number, family.hosts, family.nics)}
    switches = [switch.name for switch in plan.switches if switch.tier == 0 and switch.index in groups]
    if target in (Target.SWITCH, Target.T0):
        return switches
    links = (link for name in switches for link in plan.links_of(name))
    return list(dict.fromkeys(link.name for link in links if target is Target.LINK or link.is_host_link))
