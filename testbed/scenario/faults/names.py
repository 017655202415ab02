"""The kinds of fault targets, and messages for wrong names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import pairwise, permutations

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.text.denylist import EXAMPLES, PathGroup, parse_paths
from mrc_testbed.topos.names import link_name, parse_host, parse_switch, switch_name
from mrc_testbed.topos.plan import Plan


class Target(Enum):
    """What the names of a fault mean."""

    LINK = "a link by its two ends"
    NIC_LINK = "a NIC port by its link"
    SWITCH = "a switch"
    T0 = "a T0 switch"
    PLANE = "a plane"
    HOST = "a host"
    UPLINK = "paths of a plane by a switch or number"
    PATH = "a plane, or some of its paths by a switch or number"


def wrong_name(name: str, kind: str, target: Target, plan: Plan) -> str:
    """The message for a wrong name for this fault kind, else empty."""
    return _WRONG[target](name, kind, plan)


def links_of_target(name: str, target: Target, plan: Plan) -> tuple[str, ...]:
    """Names of the links that this target is or has an end on; it must exist in `plan`. Of a plane all its links, of
    paths over a switch its links, of those with one number all that they cross."""
    if target in (Target.LINK, Target.NIC_LINK):
        return (name,)
    if name in plan.switch_by_name or name in plan.host_by_name:
        return tuple(link.name for link in plan.links_of(name))
    paths = parse_paths(name)
    if paths is None:
        return ()
    if paths.whole:
        return tuple(link.name for link in plan.links if link.plane == paths.plane)
    ends = (switch_name(paths.plane, 0, number) for number in range(plan.shape.family.tiers[0]))
    crossed = (crossing for pair in permutations(ends, 2) for crossing in crossings(paths, *pair, plan))
    return tuple(dict.fromkeys(plan.link_between(one, other).name for one, other in crossed))


def crossings(paths: PathGroup, source: str, target: str, plan: Plan) -> Iterator[tuple[str, str]]:
    """The links between switches that those of these paths cross which lead from one T0 to another, by both ends in
    the order in which packets come to them."""
    ends = (plan.switch_by_name[name].index for name in (source, target))
    for number, way in enumerate(plan.shape.family.ways_of(*ends)):
        if paths.takes(number, way):
            yield from pairwise(switch_name(paths.plane, *place) for place in way)


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
    if paths and not switch:
        return _no_such_plane(paths, plan) or _no_such_number(paths, plan)
    if switch and name not in plan.switch_by_name:
        upper = _upper(plan)
        some = f"; there are {upper[0]}..{upper[-1]}" if upper else f"; name a plane, such as p{plan.shape.planes - 1}"
        return f"there is no switch {name!r}{did_you_mean(name, upper) or some}"
    if paths:
        return ""
    what = "a link" if ":" in name else "a T0" if switch else "a host" if parse_host(name) is not None else "no path"
    return f"{name} is {what}; deny {EXAMPLES}"


def _upper(plan: Plan) -> list[str]:
    """The switches that paths may lead over."""
    return [switch.name for switch in plan.switches if switch.tier]


def _no_such_plane(paths: PathGroup, plan: Plan) -> str:
    planes = plan.shape.planes
    return "" if paths.plane < planes else f"there is no plane {paths.plane}; there are p0..p{planes - 1}"


def _no_such_number(paths: PathGroup, plan: Plan) -> str:
    family = plan.shape.family
    if paths.number is None:
        return ""
    if family.tiers[0] == 1:
        return f"below one T0 there is one path in a plane; name it p{paths.plane}"
    most = family.most_ways()
    return "" if paths.number < most else f"no pair of hosts has more than {most} paths in a plane, u0..u{most - 1}"


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
    tier = plan.switch_by_name[name].tier
    return f"{name} is a T{tier}; {kind} needs a T0, such as {plan.switches[0].name}"


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
    if paths is None or not paths.whole:
        return f"{name} is no plane; {kind} needs one, such as {last}"
    return "" if paths.plane < plan.shape.planes else f"there is no plane {name!r}; there are p0..{last}"


def _no_uplink(name: str, kind: str, plan: Plan) -> str:
    upper, paths = _upper(plan), parse_paths(name)
    if name in upper:
        return _not_crossed(name, plan)
    if paths and paths.number is not None:
        return _no_such_plane(paths, plan) or _no_such_number(paths, plan) or _unsaid(plan)
    if not upper and plan.shape.family.tiers[0] == 1:
        return f"this fabric has no T1, and an EV of {kind} is a plane and an uplink"
    if parse_switch(name) is None or name in plan.switch_by_name:
        return f"{name} is no uplink; {kind} needs an EV by its plane and {_named_by(plan)}"
    return (
        f"there is no switch {name!r}{did_you_mean(name, upper) or f'; name an EV by its plane and {_named_by(plan)}'}"
    )


def _unsaid(plan: Plan) -> str:
    """Why no packet tells its number."""
    if plan.by_usid:
        return ""
    upper = _upper(plan)
    fix = f"name a switch, such as {upper[-1]}" if upper else "use link-loss"
    return f"switches choose the path here, and no packet says its number; {fix}"


def _not_crossed(switch: str, plan: Plan) -> str:
    if plan.shape.family.tiers[0] == 1:
        return f"below one T0 no path leads over {switch}"
    return "" if plan.next_places(plan.switch_by_name[switch].place) else f"no path leads over {switch}"


def _named_by(plan: Plan) -> str:
    upper = _upper(plan)
    if len(plan.shape.family.tiers) == 2:
        return f"T1, such as {upper[-1]}"
    return "number, such as p0/u1" + (f", or a switch, such as {upper[-1]}" if upper else "")


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
