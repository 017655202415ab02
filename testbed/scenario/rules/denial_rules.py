"""Rules about denied paths: they exist, are denied once, and leave every host a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.faults import UnsettledError
from mrc_testbed.testbed.scenario.faults.kinds.withdrawn import Deny
from mrc_testbed.testbed.scenario.faults.names import wrong_path
from mrc_testbed.testbed.scenario.model.workloads import Workload
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.denylist import PathGroup, parse_paths
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath, dotted
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan, build_plan


class _Entry(NamedTuple):
    """One denied name, from `begin` to `end` (ns; infinite for the denylist)."""

    where: KeyPath
    name: str
    paths: PathGroup
    hosts: frozenset[str]
    begin: float
    end: float

    def is_one_with(self, other: _Entry) -> bool:
        """True of two names of one denylist or fault that the folded fabric makes one. A name twice is none."""
        same_list = self.where[:2] == other.where[:2]
        same = self._replace(where=other.where, name=other.name) == other
        return same_list and same and self.name != other.name


class Talk(NamedTuple):
    """The hosts of the workload, and the peers of each by name."""

    members: tuple[Host, ...]
    peers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, job: Workload | None, plan: Plan) -> Talk:
        """From a workload; from an unreadable one all with all. Unknown hosts are left out."""
        known = plan.host_by_name
        if job is None:
            return cls(plan.hosts, {name: frozenset(known) - {name} for name in known})
        names = [name for name in job.host_names(plan.shape) if name in known]
        found: dict[str, set[str]] = {name: set() for name in names}
        for name, peer in job.pairs(plan.shape):
            if name in known and peer in known:
                found[name].add(peer)
                found[peer].add(name)
        return cls(tuple(known[name] for name in names), {name: frozenset(peers) for name, peers in found.items()})

    def crosses(self, name: str, plan: Plan) -> bool:
        """True if a path from this host to one of its peers crosses more than its T0."""
        group = plan.host_by_name[name].group
        return any(plan.host_by_name[peer].group != group for peer in self.peers.get(name, ()))

    def uses(self, name: str, paths: PathGroup, plan: Plan) -> bool:
        """True if one of these paths leads from this host to one of its peers."""
        group = plan.host_by_name[name].group
        others = {plan.host_by_name[peer].group for peer in self.peers.get(name, ())}
        return any(_meet((paths,), group, other, plan) for other in others)


def denial_mistakes(file: Readable, plan: Plan, talk: Talk) -> Iterator[Mistake]:
    """All mistakes of `endpoint.denylist`, and of `deny` faults whose paths exist."""
    members = talk.members
    entries = []
    for where, name, hosts, begin, end in _written(file, plan):
        yield from _wrong_hosts(where, hosts, members, plan)
        message = wrong_path(name, plan) or _unused(name, hosts, talk, plan)
        paths = parse_paths(name)
        if message or paths is None:
            yield Mistake(where, message)
        else:
            senders = frozenset(hosts or (host.name for host in members))
            entries.append(_Entry(where, name, _in_fabric(paths, file), senders, begin, end))
    yield from _twice(entries, plan)
    yield from _nothing_left(entries, members, build_plan(file.scenario.shape()) if _folds(file) else plan)


def _folds(file: Readable) -> bool:
    """Of a transport that has paths to deny."""
    return file.scenario.folds and file.scenario.transport.names_paths


def _meet(groups: Sequence[PathGroup], source: int, target: int, plan: Plan) -> bool:
    """True if a way from one T0 to another is of all these groups, whatever their planes."""
    ways = enumerate(plan.shape.family.ways_of(source, target))
    return any(all(group.takes(number, way) for group in groups) for number, way in ways)


def _in_fabric(paths: PathGroup, file: Readable) -> PathGroup:
    return paths._replace(plane=0) if _folds(file) else paths


def _written(file: Readable, plan: Plan) -> Iterator[tuple[KeyPath, str, tuple[str, ...], float, float]]:
    for index, denial in file.denylist.items():
        yield ("endpoint", "denylist", index), denial.path, denial.hosts, -inf, inf
    for index, fault in file.faults.items():
        if isinstance(fault, Deny):
            path = ("faults", index, "deny")
            for name, position in _denied(fault, plan, file.scenario.seed):
                where = (*path, position) if len(fault.aims) > 1 else path
                yield where, name, fault.hosts, fault.at_ns, fault.end_ns


def _denied(fault: Deny, plan: Plan, seed: int) -> Iterable[tuple[str, int]]:
    try:
        return fault.chosen(plan, seed).items()
    except UnsettledError:  # already reported
        return ()


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
            yield Mistake(place, f"{name} is not part of the workload and sends nothing")
        elif name in hosts[:index]:
            yield Mistake(place, f"duplicate host {name}")


def _unused(name: str, hosts: Sequence[str], talk: Talk, plan: Plan) -> str:
    """All but whole planes are used between some pairs of T0s only."""
    senders = [host.name for host in talk.members if not hosts or host.name in hosts]
    paths = parse_paths(name)
    if paths is None or paths.whole or not senders or any(talk.uses(each, paths, plan) for each in senders):
        return ""
    if not any(talk.crosses(host.name, plan) for host in talk.members):
        return f"no path of the workload leads over {name}: its hosts are all below one T0"
    near = (
        ""
        if any(talk.crosses(each, plan) for each in senders)
        else ": their peers in the workload are below the same T0"
    )
    return f"no path of {', '.join(senders)} leads over {name}{near}"


def _twice(entries: Sequence[_Entry], plan: Plan) -> Iterator[Mistake]:
    """Overlapping denials: the first `allow` would return what the other still denies."""
    for number, entry in enumerate(entries):
        for other in entries[:number]:
            at_once = entry.begin < other.end and other.begin < entry.end
            if at_once and not entry.is_one_with(other) and _overlap(entry, other, plan):
                by = f"{dotted(other.where)} ({other.name})" if other.name != entry.name else dotted(other.where)
                yield Mistake(entry.where, f"{entry.name} is already denied by {by}")
                break


def _overlap(one: _Entry, other: _Entry, plan: Plan) -> bool:
    """True if a host would be told twice to leave a path."""
    both = one.paths, other.paths
    if not one.hosts & other.hosts or both[0].plane != both[1].plane:
        return False
    if both[0] == both[1] or any(paths.whole for paths in both):
        return True
    known = plan.host_by_name
    senders = {known[name].group for name in one.hosts & other.hosts if name in known}
    targets = range(plan.shape.family.tiers[0])
    return any(_meet(both, source, target, plan) for source in senders for target in targets if source != target)


def _nothing_left(entries: Sequence[_Entry], members: Sequence[Host], plan: Plan) -> Iterator[Mistake]:
    """At any time every host must reach every other."""
    kept = "a T1" if len(plan.shape.family.tiers) == 2 else "a path"
    for moment in sorted({entry.begin for entry in entries}):
        active = [entry for entry in entries if entry.begin <= moment < entry.end]
        for host in members:
            denied = [entry.paths for entry in active if host.name in entry.hosts]
            peer = _unreachable(host, denied, members, plan)
            if peer is not None:
                last = [entry for entry in active if entry.begin == moment][-1]
                yield Mistake(
                    last.where,
                    f"leaves no path from {host.name} to {peer.name}; keep a plane or {kept} of one",
                )
                break


def _unreachable(host: Host, denied: Sequence[PathGroup], members: Sequence[Host], plan: Plan) -> Host | None:
    """A host that `host` cannot reach any more. Hosts of one T0 group are alike."""
    if not denied:
        return None
    for peer in {peer.group: peer for peer in members if peer is not host}.values():
        ways = list(enumerate(plan.ways(host, peer)))
        by_plane = ([some for some in denied if some.plane == plane] for plane in range(plan.shape.planes))
        if all(any(some.takes(*way) for some in denied_here) for denied_here in by_plane for way in ways):
            return peer
    return None
