"""Rules about denied paths: do they exist, are they denied once, is a path left for everybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from testbed.checks.expect import did_you_mean
from testbed.scenario.denylist import EXAMPLES, PathGroup, parse_paths
from testbed.scenario.faults import Deny
from testbed.scenario.parts import Parts
from testbed.scenario.source import KeyPath, dotted
from testbed.scenario.wording import Mistake
from topos.names import parse_host, parse_switch
from topos.plan import Host, Plan


class _Entry(NamedTuple):
    """One name that somebody denies, from `begin` to `end` (ns; infinite for the denylist)."""

    where: KeyPath
    name: str
    paths: PathGroup
    hosts: frozenset[str]
    begin: float
    end: float


def denial_mistakes(parts: Parts, plan: Plan, taking_part: Iterable[str]) -> Iterator[Mistake]:
    """Everything wrong with `endpoint.denylist` and with `deny` faults. `taking_part`: the workload's hosts."""
    members = [plan.host_by_name[name] for name in taking_part if name in plan.host_by_name]
    entries = []
    for where, name, hosts, begin, end in _written(parts):
        yield from _wrong_hosts(where, hosts, members, plan)
        message = _wrong_name(name, plan) or _unused(name, hosts, members)
        paths = parse_paths(name)
        if message or paths is None:
            yield Mistake(where, message)
        else:
            senders = frozenset(hosts or (host.name for host in members))
            entries.append(_Entry(where, name, paths, senders, begin, end))
    yield from _twice(entries)
    yield from _nothing_left(entries, members, plan)


def _written(parts: Parts) -> Iterator[tuple[KeyPath, str, tuple[str, ...], float, float]]:
    for index, denial in parts.denylist.items():
        yield ("endpoint", "denylist", index), denial.path, denial.hosts, -inf, inf
    for index, fault in parts.faults.items():
        if isinstance(fault, Deny):
            for position, name in enumerate(fault.paths):
                path = ("faults", index, "deny")
                where = (*path, position) if len(fault.paths) > 1 else path
                yield where, name, fault.hosts, fault.at_ns, fault.end_ns


def _wrong_name(name: str, plan: Plan) -> str:
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


def _wrong_hosts(where: KeyPath, hosts: Sequence[str], members: Iterable[Host], plan: Plan) -> Iterator[Mistake]:
    places = where[: 3 if where[0] == "endpoint" else 2]
    taking_part = {host.name for host in members}
    for index, name in enumerate(hosts):
        place = (*places, "hosts", index)
        if name not in plan.host_by_name:
            known = list(plan.host_by_name)
            hint = did_you_mean(name, known) or f"; there are {known[0]}..{known[-1]}"
            yield Mistake(place, f"there is no host {name!r}{hint}")
        elif name not in taking_part:
            yield Mistake(place, f"{name} takes no part in the workload and sends nothing")
        elif name in hosts[:index]:
            yield Mistake(place, f"{name} stands here twice")


def _unused(name: str, hosts: Sequence[str], members: Sequence[Host]) -> str:
    """A path over a T1 is used between T0 groups only."""
    senders = [host for host in members if not hosts or host.name in hosts]
    paths = parse_paths(name)
    if paths is None or paths.uplink is None or not senders:
        return ""
    if any(host.group != peer.group for host in senders for peer in members):
        return ""
    return f"no path of the workload leads over {name}: its hosts are all below one T0"


def _twice(entries: Sequence[_Entry]) -> Iterator[Mistake]:
    """The first to allow would give back what the other denies."""
    for number, entry in enumerate(entries):
        for other in entries[:number]:
            at_once = entry.begin < other.end and other.begin < entry.end
            same_paths = other.paths.holds(entry.paths) or entry.paths.holds(other.paths)
            if at_once and same_paths and entry.hosts & other.hosts:
                by = f"{dotted(other.where)} ({other.name})" if other.name != entry.name else dotted(other.where)
                yield Mistake(entry.where, f"{entry.name} is denied by {by} already")
                break


def _nothing_left(entries: Sequence[_Entry], members: Sequence[Host], plan: Plan) -> Iterator[Mistake]:
    """Whenever something is denied, every host must still reach every other."""
    for moment in sorted({entry.begin for entry in entries}):
        active = [entry for entry in entries if entry.begin <= moment < entry.end]
        for host in members:
            denied = [entry.paths for entry in active if host.name in entry.hosts]
            peer = _unreachable(host, denied, members, plan)
            if peer is not None:
                last = [entry for entry in active if entry.begin == moment][-1]
                yield Mistake(
                    last.where, f"leaves no path from {host.name} to {peer.name}; leave a plane or a T1 of one"
                )
                break


def _unreachable(host: Host, denied: Sequence[PathGroup], members: Sequence[Host], plan: Plan) -> Host | None:
    """A host that `host` cannot send to any more. All in one T0 group are alike."""
    if not denied:
        return None
    for peer in {peer.group: peer for peer in members if peer is not host}.values():
        near = peer.group == host.group
        groups = [PathGroup(path.id.plane, None if near else path.id.uplink) for path in plan.paths(host, peer)]
        if all(any(some.holds(group) for some in denied) for group in groups):
            return peer
    return None
