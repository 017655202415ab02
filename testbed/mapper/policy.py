"""What the mapper may deny: the accusations it acts on, the paths that takes, and what hosts keep. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from mrc_testbed.testbed.mapper.locate import DEAD
from mrc_testbed.testbed.mapper.mapper import MapChange
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.usid import PathId

TalkingPath = tuple[str, str, PathId]
"""Sender, receiver, and one of its paths."""


class DenyPolicy(StrEnum):
    """What is denied, of all that is accused."""

    NOTHING = "nothing"
    LOSSY_NIC_LINKS = "lossy NIC links"
    """Links between a host and a T0 that lose a part: endpoints leave what is dead by themselves, and cannot tell whose
    end of a path loses."""
    NIC_LINKS = "NIC links"
    ALL = "all"


class MapPolicy:
    """Decides for the hosts of a workload. `denied`: what is denied now, by the name of the accused."""

    def __init__(self, plan: Plan, pairs: Iterable[tuple[str, str]], policy: DenyPolicy, above: float) -> None:
        """`pairs`: who sends to whom; `above`: the share of packets that a thing must lose to be denied."""
        self._plan, self._policy, self._above = plan, policy, above
        self._crossing: dict[str, set[TalkingPath]] = {}
        """By link: the paths that cross it."""
        self._between: dict[tuple[str, str], list[TalkingPath]] = {}
        for sender, receiver in pairs:
            self._add(sender, receiver)
        self.denied: dict[str, frozenset[TalkingPath]] = {}

    def _add(self, sender: str, receiver: str) -> None:
        hosts = self._plan.host_by_name
        for path in self._plan.paths(hosts[sender], hosts[receiver]):
            one = sender, receiver, path.id
            self._between.setdefault((sender, receiver), []).append(one)
            for link in self._plan.links_on_path(hosts[sender], hosts[receiver], path.id):
                self._crossing.setdefault(link, set()).add(one)

    def wants(self, change: MapChange) -> bool:
        """True of an accusation that the policy acts on."""
        if self._policy is DenyPolicy.NOTHING or change.loss <= self._above:
            return False
        if self._policy is DenyPolicy.ALL:
            return True
        named = any(map(self._is_nic_link, (change.name, *change.alike)))
        return named and (self._policy is DenyPolicy.NIC_LINKS or change.loss < DEAD)

    def _is_nic_link(self, name: str) -> bool:
        link = self._plan.link_by_name.get(name)
        return link is not None and link.near.node in self._plan.host_by_name

    def paths(self, change: MapChange) -> frozenset[TalkingPath]:
        """The paths that cross the accused, and all that cannot be told from it."""
        return frozenset(set.intersection(*(self.over(name) for name in (change.name, *change.alike))))

    def over(self, name: str) -> set[TalkingPath]:
        """Those over a link, or over a node."""
        links = [name] if name in self._plan.link_by_name else [link.name for link in self._plan.links_of(name)]
        return set[TalkingPath]().union(*(self._crossing.get(link, ()) for link in links))

    def left_without(self, paths: frozenset[TalkingPath], accused: Iterable[MapChange]) -> str:
        """Sender and receiver, in words, that would have no path left that works; empty if all have one."""
        dead = (self.over(one.name) for one in accused if one.loss >= DEAD)
        gone = paths.union(*self.denied.values(), *dead)
        for sender, receiver in sorted({(sender, receiver) for sender, receiver, _ in paths}):
            if gone.issuperset(self._between[sender, receiver]):
                return f"{sender} no path to {receiver}"
        return ""

    def rows(self, paths: Iterable[TalkingPath]) -> Mapping[str, list[dict[str, object]]]:
        """What each sender is told: whole planes where that is the same."""
        by_plane: dict[tuple[str, int], dict[str, list[int]]] = {}
        for sender, receiver, path in sorted(paths, key=lambda one: (*one[:2], one[2].plane, one[2].uplink)):
            by_plane.setdefault((sender, path.plane), {}).setdefault(receiver, []).append(path.uplink)
        found: dict[str, list[dict[str, object]]] = {}
        for (sender, plane), peers in by_plane.items():
            found.setdefault(sender, []).extend(self._rows_of(sender, plane, peers))
        return found

    def _rows_of(self, sender: str, plane: int, peers: Mapping[str, list[int]]) -> list[dict[str, object]]:
        wholly = [peer for peer, numbers in peers.items() if len(numbers) == self._ways(sender, peer, plane)]
        if len(wholly) == sum(one == sender for one, _ in self._between):
            return [{"plane": plane}]
        return [
            row
            for peer, numbers in peers.items()
            for row in (
                [{"plane": plane, "peer": peer}]
                if peer in wholly
                else [{"plane": plane, "uplink": number, "peer": peer} for number in numbers]
            )
        ]

    def _ways(self, sender: str, receiver: str, plane: int) -> int:
        return sum(path.plane == plane for _, _, path in self._between[sender, receiver])
