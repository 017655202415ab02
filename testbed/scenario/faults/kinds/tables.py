"""Faults of a switch's table and of its cabling: an entry that is missing or wrong, and two cables swapped.

Every port stays up. What goes by a wrong entry ends at the next node, which has no entry for it.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import Lasting, Misfit, Surroundings, UnsettledError
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.names import Target, unknown_name
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters, Occurrence
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, State
from mrc_testbed.topos.nodes import Interface, Link
from mrc_testbed.topos.plan import Plan

_SWITCH, _BY = "switch", "by"
"""Values of an occurrence: the switch whose table is wrong, and the link by which it leads; without one the entry is
missing."""


class _OfTable(Lasting, ABC):
    target: ClassVar[Target] = Target.LINK
    effect: ClassVar[Effect] = Effect.TABLE
    drawing: ClassVar[Drawing] = Drawing(State.BROKEN)

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses fabrics whose switches have no such entries."""
        if around.usid_tables is False:
            yield Misfit("", f"{self.kind} changes entries for uSIDs, and no switch of this fabric has written ones")

    def groups(self, targets: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Each entry by itself."""
        return tuple((target,) for target in targets)

    def done_to(self, targets: tuple[str, ...], plan: Plan, chance: Chance) -> Iterator[Occurrence]:
        """The occurrences of these targets. Raises UnsettledError for a link whose entry no switch has, or that lacks
        another to lead by."""
        for one in super().done_to(targets, plan, chance):
            yield self._settled(one, plan)

    def _settled(self, one: Occurrence, plan: Plan) -> Occurrence:
        raise NotImplementedError


class _OfEntry(_OfTable, ABC):
    direction: Literal["up", "down"] = Field(
        description="the entry for packets that cross the link `up` (away from the hosts) or `down`", examples=["up"]
    )

    def _switch(self, link: Link) -> str:
        """The switch that has the entry. Raises UnsettledError for what hosts send."""
        if self.direction == "up" and link.is_host_link:
            raise _unsettled("direction", f"up {link.name} it is {link.near.node} that sends, and a host is no switch")
        return link.near.node if self.direction == "up" else link.far.node


@declare
class EntryMissing(_OfEntry):
    """The table of a switch lacks the entry for a neighbour: what should go there is dropped."""

    kind: ClassVar[str] = "entry-missing"
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "1s", "direction": "up"}

    aims: Targets = Field(alias="entry-missing", description="the link or links", examples=["p0-t0-0:p0-t1-2"])

    def _settled(self, one: Occurrence, plan: Plan) -> Occurrence:
        switch = self._switch(plan.link_by_name[one.targets[0]])
        return replace(one, parameters=FaultParameters(words=f"in {switch}", values={_SWITCH: switch}))


@declare
class EntryWrong(_OfEntry):
    """The table of a switch leads to a neighbour by the port of another one, which drops what comes."""

    kind: ClassVar[str] = "entry-wrong"
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "1s", "direction": "up"}

    aims: Targets = Field(alias="entry-wrong", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    by: str = Field(default="", description="the link by which the entry leads", examples=["p0-t0-0:p0-t1-3"])

    def _settled(self, one: Occurrence, plan: Plan) -> Occurrence:
        link = plan.link_by_name[one.targets[0]]
        switch = self._switch(link)
        by = _other(self.by, "by", link, switch, plan)
        return replace(one, parameters=_misleading(switch, by))


@declare
class CablesSwapped(_OfTable):
    """Two cables change places at a switch that both end at: each leads to the far end of the other. Ports are named
    by where they lead, so it is the table that has both names wrong."""

    kind: ClassVar[str] = "cables-swapped"
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "1s"}

    aims: Targets = Field(alias="cables-swapped", description="the first of the two", examples=["p0-t0-0:p0-t1-2"])
    other: str = Field(default="", alias="with", description="the second", examples=["p0-t0-0:p0-t1-3"])

    def _settled(self, one: Occurrence, plan: Plan) -> Occurrence:
        link = plan.link_by_name[one.targets[0]]
        switch = self._shared(link, plan)
        other = _other(self.other, "with", link, switch, plan)
        return replace(one, links=(link.name, other), parameters=_misleading(switch, other, at=True))

    def _shared(self, link: Link, plan: Plan) -> str:
        """The switch where they swap places: of both ends, the nearer to the hosts if either would do."""
        ends = [end.node for end in link.ends if end.node in plan.switch_by_name]
        second = plan.link_by_name.get(self.other)
        if second is None:
            return ends[0]
        shared = [node for node in ends if node in (second.near.node, second.far.node)]
        if not shared:
            raise _unsettled("with", f"{second.name} has no end at {' or '.join(ends)}, where {link.name} ends")
        return shared[0]


def _other(name: str, key: str, link: Link, switch: str, plan: Plan) -> str:
    """The name of another link of a switch: the named one, or the next of the same kind. Raises UnsettledError."""
    if name:
        if name not in plan.link_by_name:
            raise _unsettled(key, unknown_name("link", name, plan.link_by_name))
        if name == link.name:
            raise _unsettled(key, f"{name} is the link itself; name another one of {switch}")
        if plan.link_by_name[name] not in plan.links_of(switch):
            raise _unsettled(key, f"{name} has no end at {switch}; name another link of {switch}")
        return name
    alike = [each.name for each in plan.links_of(switch) if each.is_host_link is link.is_host_link]
    following = alike[(alike.index(link.name) + 1) % len(alike)]
    if following == link.name:
        raise _unsettled("", f"{link.name} is the only link of its kind at {switch}; name another one by `{key}`")
    return following


def _misleading(switch: str, by: str, at: bool = False) -> FaultParameters:
    return FaultParameters(words=f"{'with' if at else 'by'} {by}", values={_SWITCH: switch, _BY: by})


def _unsettled(key: str, message: str) -> UnsettledError:
    return UnsettledError([((key,) if key else (), message)])


def misled_by(occurrence: Occurrence, plan: Plan) -> dict[Interface, Interface | None]:
    """What a fault of a table makes of its switch's entries: by the port towards a neighbour, the port that its entry
    leads to; None: the entry is missing."""
    values = occurrence.parameters.values
    switch, by = str(values[_SWITCH]), str(values.get(_BY, ""))
    ports = [_port_at(switch, plan.link_by_name[name]) for name in occurrence.links]
    if len(ports) > 1:
        return {ports[0]: ports[1], ports[1]: ports[0]}
    return {ports[0]: _port_at(switch, plan.link_by_name[by]) if by else None}


def switch_of(occurrence: Occurrence) -> str:
    """The switch whose table is wrong."""
    return str(occurrence.parameters.values[_SWITCH])


def ends_at(occurrence: Occurrence, plan: Plan) -> set[str]:
    """The nodes where packets of this fault end, because they have no entry for them."""
    switch = switch_of(occurrence)
    peers = {own: peer.node for own, peer in plan.ports[switch]}
    return {switch if instead is None else peers[instead] for instead in misled_by(occurrence, plan).values()}


def _port_at(node: str, link: Link) -> Interface:
    return link.near if link.near.node == node else link.far
