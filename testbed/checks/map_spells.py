"""What the mapper says, place by place: broken from when to when. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mrc_testbed.testbed.mapper.locate import DEAD
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange


@dataclass(frozen=True, slots=True)
class MapSpell:
    """Something that the mapper took for broken. `said`: when it said so, with all that it knew; `cleared_ns`: when it
    took that back, because packets crossed it well; None: it never did. `last_ns`: the last loss that is put down to
    it. `over`: it was known only when it was well again."""

    said: MapChange
    last_ns: int
    cleared_ns: int | None
    over: bool = False

    @property
    def is_dead(self) -> bool:
        """Whether it lost all packets, as far as that can be told from few."""
        return self.said.loss >= DEAD


def map_spells(changes: Iterable[MapChange]) -> list[MapSpell]:
    """In the order in which they were said."""
    found: list[MapSpell] = []
    standing: dict[tuple[str, str | None], int] = {}
    for change in changes:
        key = change.name, change.direction
        if change.action is MapAction.ACCUSE:
            standing[key] = len(found)
            found.append(MapSpell(change, change.last_ns, None))
        elif change.action is MapAction.OVER:
            found.append(MapSpell(change, change.last_ns, change.t_ns, over=True))
        elif key in standing:
            number = standing.pop(key)
            found[number] = MapSpell(found[number].said, change.last_ns, change.t_ns)
    return found
