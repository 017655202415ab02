"""The fewest and simplest items that still fail. Pure: what fails is asked of a function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Shrunk(Generic[Item]):
    """What is left. `runs`: how often it was asked; `minimal`: nothing simpler that was thought of fails too."""

    items: tuple[Item, ...]
    runs: int
    minimal: bool


class EnoughError(Exception):
    """It has been asked often enough."""


class Shrinking(Generic[Item]):
    """Begins with `items`, which fail. `simpler`: an item in simpler forms, the simplest first, each nearer to an end.
    Asks `fails` at most `most` times, never twice of the same."""

    def __init__(
        self,
        items: Sequence[Item],
        fails: Callable[[tuple[Item, ...]], bool],
        simpler: Callable[[Item], Iterable[Item]],
        most: int,
    ) -> None:
        self._left = tuple(items)
        self._fails = fails
        self._simpler = simpler
        self._most = most
        self._asked: set[tuple[Item, ...]] = {self._left}
        self._runs = 0

    def run(self) -> Shrunk[Item]:
        """Fewer items first, then simpler ones, then fewer again until neither helps."""
        try:
            if not self._accepts(()):
                self._fewer()
                while self._simplify():
                    self._fewer()
        except EnoughError:
            return self.so_far(minimal=False)
        return self.so_far(minimal=True)

    def so_far(self, minimal: bool) -> Shrunk[Item]:
        """The smallest that is known to fail."""
        return Shrunk(self._left, self._runs, minimal)

    def _accepts(self, items: tuple[Item, ...]) -> bool:
        if items in self._asked:
            return False
        if self._runs >= self._most:
            raise EnoughError
        self._asked.add(items)
        self._runs += 1
        if not self._fails(items):
            return False
        self._left = items
        return True

    def _fewer(self) -> None:
        """Leave out halves, quarters ... and single items, until no single one can be left out."""
        size = max(1, len(self._left) // 2)
        while True:
            found = any(map(self._accepts, _without_chunks(self._left, size)))
            if not found and size == 1:
                return
            size = min(size, max(1, len(self._left) // 2)) if found else max(1, size // 2)

    def _simplify(self) -> bool:
        """Each item as simple as it can be; whether any is simpler now."""
        before = self._left
        for index in range(len(self._left)):
            while any(self._accepts(_replaced(self._left, index, form)) for form in self._simpler(self._left[index])):
                pass
        return self._left != before


def _without_chunks(items: tuple[Item, ...], size: int) -> Iterator[tuple[Item, ...]]:
    return (items[:begin] + items[begin + size :] for begin in range(0, len(items), size))


def _replaced(items: tuple[Item, ...], index: int, form: Item) -> tuple[Item, ...]:
    return (*items[:index], form, *items[index + 1 :])
