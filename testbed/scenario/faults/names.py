"""The kinds of fault targets, and messages for wrong names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.text.denylist import EXAMPLES, parse_paths
from mrc_testbed.topos.names import link_name, parse_host, parse_switch
from mrc_testbed.topos.plan import Plan


class Target(Enum):
    """What the names of a fault mean."""

    LINK = "a link by its two ends"
    NIC_LINK = "a NIC port by its link"
    SWITCH = "a switch"
    T0 = "a T0 switch"
    PLANE = "a plane"
    HOST = "a host"
    UPLINK = "an uplink by its T1"
    PATH = "a plane, or an uplink by its T1"


def wrong_name(name: str, kind: str, target: Target, plan: Plan) -> str:
    """The message for a wrong name for this fault kind, else empty."""
    return _WRONG[target](name, kind, plan)


def links_of_target(name: str, target: Target, plan: Plan) -> tuple[str, ...]:
    """Names of the links that this target is or has an end on; it must exist in `plan`. Of a plane all its links, of an
    uplink those of its T1."""
    if target in (Target.LINK, Target.NIC_LINK):
        return (name,)
    if name in plan.switch_by_name or name in plan.host_by_name:
        return tuple(link.name for link in plan.links_of(name))
    paths = parse_paths(name)
    return tuple(link.name for link in plan.links if paths and link.plane == paths.plane)


def unknown_name(noun: str, name: str, known: Iterable[str]) -> str:
    """A link, switch or host that does not exist, with the nearest name."""
    known = list(known)
    near, _, far = name.partition(":")
    if link_name(far, near) in known:
        return f"there is no {noun} {name!r}; the end nearer to the hosts comes first: {link_name(far, near)!r}"
    some = f"{known[0]}..{known[-1]}" if known else "none in this fabric"
    return f"there is no {noun} {name!r}{did_you_mean(name, known) or f'; there are {some}'}"


def wrong_path(name: str, plan: Plan) -> str:
    """The message for a wrong name of denied paths, else empty."""
    paths, switch = parse_paths(name), parse_switch(name)
    if paths and paths.plane >= plan.shape.planes and not switch:
        return f"there is no plane {paths.plane}; there are p0..p{plan.shape.planes - 1}"
    if switch and name not in plan.switch_by_name:
        t1 = [known.name for known in plan.switches if known.tier == 1]
        some = f"; there are {t1[0]}..{t1[-1]}" if t1 else f"; name a plane, such as p{plan.shape.planes - 1}"
        return f"there is no switch {name!r}{did_you_mean(name, t1) or some}"
    if paths:
        return ""
    what = "a link" if ":" in name else "a T0" if switch else "a host" if parse_host(name) is not None else "no path"
    return f"{name} is {what}; deny {EXAMPLES}"


def _no_link(name: str, kind: str, plan: Plan) -> str:
    if name in plan.link_by_name:
        return ""
    if parse_host(name) is not None or parse_switch(name) is not None:
        return f"{name} is one node; {kind} needs a link by its two ends, such as {plan.links[-1].name}"
    return unknown_name("link", name, plan.link_by_name)


def _no_nic_link(name: str, kind: str, plan: Plan) -> str:
    message = _no_link(name, kind, plan)
    if message or plan.link_by_name[name].is_host_link:
        return message
    return f"{name} is no NIC port; {kind} needs a link of a host, such as {plan.links[0].name}"


def _no_switch(name: str, kind: str, plan: Plan) -> str:
    if name in plan.switch_by_name:
        return ""
    if name in plan.host_by_name:
        return f"{name} is a host; {kind} needs a switch, such as {plan.switches[-1].name}"
    if ":" in name:
        return f"{name} is not a switch; {kind} needs one, such as {plan.switches[-1].name}"
    return unknown_name("switch", name, plan.switch_by_name)


def _no_t0(name: str, kind: str, plan: Plan) -> str:
    message = _no_switch(name, kind, plan)
    if message or plan.switch_by_name[name].tier == 0:
        return message
    return f"{name} is a T1; {kind} needs a T0, such as {plan.switches[0].name}"


def _no_host(name: str, kind: str, plan: Plan) -> str:
    if name in plan.host_by_name:
        return ""
    if name in plan.switch_by_name or ":" in name:
        what = "a link" if ":" in name else "a switch"
        return f"{name} is {what}; {kind} needs a host, such as {plan.hosts[-1].name}"
    return unknown_name("host", name, plan.host_by_name)


def _no_plane(name: str, kind: str, plan: Plan) -> str:
    paths = parse_paths(name)
    last = f"p{plan.shape.planes - 1}"
    if paths is None or paths.uplink is not None:
        return f"{name} is no plane; {kind} needs one, such as {last}"
    return "" if paths.plane < plan.shape.planes else f"there is no plane {name!r}; there are p0..{last}"


def _no_uplink(name: str, kind: str, plan: Plan) -> str:
    t1 = [switch.name for switch in plan.switches if switch.tier == 1]
    if name in t1:
        return "" if plan.shape.t0_groups > 1 else f"below one T0 no path leads over {name}"
    if not t1:
        return f"this fabric has no T1, and an EV of {kind} is a plane and an uplink"
    if parse_switch(name) is None or name in plan.switch_by_name:
        return f"{name} is no uplink; {kind} needs an EV by its plane and T1, such as {t1[-1]}"
    return f"there is no switch {name!r}{did_you_mean(name, t1) or f'; there are {t1[0]}..{t1[-1]}'}"


_WRONG: Mapping[Target, Callable[[str, str, Plan], str]] = {
    Target.LINK: _no_link,
    Target.NIC_LINK: _no_nic_link,
    Target.SWITCH: _no_switch,
    Target.T0: _no_t0,
    Target.HOST: _no_host,
    Target.PLANE: _no_plane,
    Target.UPLINK: _no_uplink,
    Target.PATH: lambda name, _, plan: wrong_path(name, plan),
}
