"""What names in answers mean: which links are out of order if they are right, and which names nobody can tell apart.
Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from mrc_testbed.testbed.checks.route_times import RouteTimes
from mrc_testbed.testbed.mapper.suspects import Direction, Suspect, SuspectTable, alike
from mrc_testbed.topos.plan import Plan

WAYS: tuple[Direction, ...] = ("up", "down")


class FabricPlaces:
    """The names of a fabric. `routes`: ways of the packets that anybody could have seen; what the same of them cross
    counts as equal, as long as these are all that is remembered."""

    def __init__(self, plan: Plan, table: SuspectTable, routes: RouteTimes) -> None:
        self._plan, self._table, self._routes = plan, table, routes
        self._classes: dict[float, Mapping[tuple[str, Direction | None], frozenset[Suspect]]] = {}

    @cached_property
    def seen(self) -> frozenset[str]:
        """The links that any packet crosses."""
        crossed = {element for route in self._routes for element in route}
        return frozenset(name for name in self._plan.link_by_name if self._table.named(name).elements & crossed)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All of them: hosts, switches, links."""
        return (*self._plan.node_names, *self._plan.link_by_name)

    def links(self, name: str) -> frozenset[str]:
        """The link of that name, or all that end at a node."""
        if name in self._plan.link_by_name:
            return frozenset([name])
        return frozenset(link.name for link in self._plan.links_of(name))

    def is_right(self, name: str, broken: frozenset[str]) -> bool:
        """Is it right to name this when these links are broken? A link if it is one of them; a node if all its links
        are that lead one way, towards the hosts or away: of the others nobody can know more."""
        sides = [
            {link.name for link in self._plan.links_of(name) if (link.far.node == name) is upper}
            for upper in (True, False)
            if name not in self._plan.link_by_name
        ]
        return any(side and side <= broken for side in sides or [{name}])

    def same(self, name: str, t_ns: float) -> frozenset[str]:
        """Names that mean the same, as far as anybody can know at this moment; itself among them."""
        return frozenset(one.name for one in self._alike(name, None, t_ns) if one.direction is None) | {name}

    def like(self, name: str, way: Direction | None, t_ns: float) -> frozenset[Suspect]:
        """What nobody can tell from this name at this moment, links in one direction among it. `way`: the direction
        in which the name is meant; None: in any."""
        ways = (None, way) if way else (None, *WAYS)
        return frozenset(one for each in ways for one in self._alike(name, each, t_ns))

    def _alike(self, name: str, way: Direction | None, t_ns: float) -> frozenset[Suspect]:
        if t_ns not in self._classes:
            self._classes[t_ns] = {
                (suspect.name, suspect.direction): members
                for members in alike(self._table, self._routes.at(t_ns))
                for suspect in members
            }
        return self._classes[t_ns].get((name, way), frozenset())
