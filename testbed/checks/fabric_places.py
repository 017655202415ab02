"""What names in answers mean: which links are out of order if they are right, and which names nobody can tell apart.
Pure."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from mrc_testbed.testbed.mapper.suspects import Elements, SuspectTable, alike
from mrc_testbed.topos.plan import Plan


class FabricPlaces:
    """The names of a fabric. `routes`: ways of the packets that anybody could have seen; what the same of them cross
    counts as equal. `seen`: the links that any of them crosses."""

    def __init__(self, plan: Plan, table: SuspectTable, routes: Collection[Elements]) -> None:
        self._plan = plan
        crossed = {element for route in routes for element in route}
        self.seen = frozenset(name for name in plan.link_by_name if table.named(name).elements & crossed)
        self._classes = {
            suspect.name: frozenset(one.name for one in members if one.direction is None)
            for members in alike(table, routes)
            for suspect in members
            if suspect.direction is None
        }

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

    def same(self, name: str) -> frozenset[str]:
        """Names that mean the same, as far as anybody can know; itself among them."""
        return self._classes.get(name, frozenset()) | {name}
