"""What can be to blame for a loss, and what a packet crosses, both read off a plan by walking its links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal

from mrc_testbed.topos.plan import Plan

Direction = Literal["up", "down"]
"""Of packets on a link: away from the hosts, or towards them."""
Elements = tuple[int, ...]
"""What a packet crosses, in order, as numbers of `SuspectTable`: nodes, and links each in one direction."""


class SuspectKind(StrEnum):
    """What a suspect is."""

    HOST = "host"
    """All that is at one host: its program, its NIC, the transceiver of all its ports."""
    LINK = "link"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """Something that may be broken; there is one object of each in a `SuspectTable`. `direction`: of a link that loses
    packets one way; None: both ways, or no link. `elements`: a packet meets the suspect wherever it crosses one of
    these."""

    name: str
    kind: SuspectKind
    direction: Direction | None
    elements: frozenset[int]

    def __str__(self) -> str:
        return f"{self.name} {self.direction}" if self.direction else self.name


class SuspectTable:
    """Everything in a fabric that can be to blame."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        links = plan.links
        self._nodes = {name: number for number, name in enumerate(plan.node_names)}
        first = len(self._nodes)
        self._up = {link.name: first + 2 * number for number, link in enumerate(links)}
        self.elements = first + 2 * len(links)
        """How many there are: nodes, then each link up and down."""
        nodes = [Suspect(name, self._kind(name), None, frozenset([n])) for name, n in self._nodes.items()]
        self.all = (*nodes, *(suspect for name in self._up for suspect in self._of_link(name)))
        self._by_name = {(one.name, one.direction): one for one in self.all}
        touching: list[list[Suspect]] = [[] for _ in range(self.elements)]
        for suspect in self.all:
            for element in suspect.elements:
                touching[element].append(suspect)
        self.touching = tuple(map(tuple, touching))
        """By element: the suspects that a packet meets there."""

    def _kind(self, node: str) -> SuspectKind:
        return SuspectKind.HOST if node in self._plan.host_by_name else SuspectKind.SWITCH

    def _of_link(self, name: str) -> list[Suspect]:
        up = self._up[name]
        return [
            Suspect(name, SuspectKind.LINK, None, frozenset([up, up + 1])),
            Suspect(name, SuspectKind.LINK, "up", frozenset([up])),
            Suspect(name, SuspectKind.LINK, "down", frozenset([up + 1])),
        ]

    @cached_property
    def components(self) -> int:
        """How many things can break: links, switches and hosts, whatever the direction."""
        return len(self._nodes) + len(self._up)

    def named(self, name: str, direction: Direction | None = None) -> Suspect:
        """Raises KeyError for what is not in the fabric."""
        return self._by_name[name, direction]

    def links_of(self, suspect: Suspect) -> frozenset[str]:
        """The links that are out of order when the suspect is broken: itself, or all that end at it."""
        if suspect.kind is SuspectKind.LINK:
            return frozenset([suspect.name])
        return frozenset(link.name for link in self._plan.links_of(suspect.name))

    def crossed(self, start: str, links: Iterable[str]) -> Elements:
        """What a packet crosses that leaves `start` and takes these links one after the other, nodes at both ends
        included. Raises ValueError where a link does not go on from where the last one ended."""
        node, found = start, [self._nodes[start]]
        for name in links:
            link = self._plan.link_by_name[name]
            if node == link.near.node:
                node, element = link.far.node, self._up[name]
            elif node == link.far.node:
                node, element = link.near.node, self._up[name] + 1
            else:
                raise ValueError(f"{name} does not begin at {node}")
            found += [element, self._nodes[node]]
        return tuple(found)


def in_common(routes: Sequence[Elements]) -> Elements:
    """What a packet crosses whichever of these ways it takes, in the order of the first."""
    shared = set(routes[0]).intersection(*routes[1:])
    return tuple(element for element in routes[0] if element in shared)


def alike(table: SuspectTable, routes: Iterable[Elements]) -> tuple[frozenset[Suspect], ...]:
    """Classes of suspects that packets on these ways cannot tell apart, because the same ones cross all of them; each
    of two at least, and by the order of the table. What none crosses is in no class."""
    crossed: dict[Suspect, set[int]] = {}
    for number, route in enumerate(routes):
        for element in route:
            for suspect in table.touching[element]:
                crossed.setdefault(suspect, set()).add(number)
    classes: dict[frozenset[int], list[Suspect]] = {}
    for suspect in table.all:
        if suspect in crossed:
            classes.setdefault(frozenset(crossed[suspect]), []).append(suspect)
    return tuple(frozenset(each) for each in classes.values() if len({one.name for one in each}) > 1)
