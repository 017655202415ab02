"""Compact counters of one moment: a run of an hour has 140 000 times 90 of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

_PLACES: dict[tuple[str, ...], dict[str, int]] = {}
"""Index of each counter name, shared by all rows of one program."""


class CounterRow(Mapping[str, int]):
    """Read-only counters by name, 8 bytes each. Raises TypeError or ValueError for what is no 64-bit integer."""

    __slots__ = ("_counts", "_places")

    def __init__(self, counters: Mapping[str, int]) -> None:
        names = tuple(counters)
        self._places = _PLACES.setdefault(names, {name: place for place, name in enumerate(names)})
        try:
            self._counts = array("q", counters.values())
        except OverflowError as error:
            raise ValueError(f"a counter: {error}") from None

    def __getitem__(self, name: str) -> int:
        return self._counts[self._places[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"CounterRow({dict(self)})"
