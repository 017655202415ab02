"""What faults hold at the same time: ports down, switches off, links slow. Each lets go of its own, in any order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
Key = tuple[str, int]
"""`Cycle.key`: a cycle of a fault."""


class Holds(Generic[T]):
    """Things that one or more cycles hold; a thing is free again when the last of them has let go."""

    def __init__(self) -> None:
        self._held: dict[Key, tuple[T, ...]] = {}

    def take(self, key: Key, things: Iterable[T]) -> list[T]:
        """Hold them; returns those that nobody held before."""
        things = tuple(things)
        new = [thing for thing in things if thing not in self]
        self._held[key] = things
        return new

    def release(self, key: Key) -> list[T]:
        """Let go of all that a cycle holds; returns what nobody holds any more."""
        mine = self._held.pop(key, ())
        return [thing for thing in mine if thing not in self]

    def __contains__(self, thing: object) -> bool:
        return any(thing in things for things in self._held.values())


class Limits:
    """Rates of links that one or more cycles limit: the least of them counts."""

    def __init__(self) -> None:
        self._limits: dict[Key, Mapping[str, int]] = {}

    def take(self, key: Key, limits: Mapping[str, int]) -> None:
        """Limit these links, in b/s."""
        self._limits[key] = limits

    def release(self, key: Key) -> None:
        """Let go of all that a cycle limits."""
        self._limits.pop(key, None)

    def of(self, link: str) -> int | None:
        """The least limit of a link, None when there is none."""
        return min((limits[link] for limits in self._limits.values() if link in limits), default=None)
