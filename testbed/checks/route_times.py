"""When packets took which way, as far as anybody told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import Elements


class RouteTimes:
    """The ways that were told of. What was seen on one is remembered for `keep_ns`."""

    def __init__(self, keep_ns: int) -> None:
        self._keep_ns = keep_ns
        self._spells: dict[Elements, list[list[int]]] = {}
        """By way: begin and end of each time in which it was seen again before it was forgotten."""

    def __iter__(self) -> Iterator[Elements]:
        return iter(self._spells)

    def __len__(self) -> int:
        return len(self._spells)

    def add(self, rows: Iterable[Observation]) -> None:
        """More that was seen, about in the order of time."""
        for row in rows:
            spells = self._spells.setdefault(row.route, [])
            if spells and row.begin_ns <= spells[-1][1] + self._keep_ns:
                spells[-1][1] = max(spells[-1][1], row.end_ns)
            else:
                spells.append([row.begin_ns, row.end_ns])

    def at(self, t_ns: float) -> list[Elements]:
        """Ways that somebody who decides at this moment remembers."""
        return [
            route
            for route, spells in self._spells.items()
            if any(begin <= t_ns <= end + self._keep_ns for begin, end in spells)
        ]
