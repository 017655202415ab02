"""The latest events, one line each; reports of one cause by many hosts share a line. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mrc_testbed.topos.shape import Shape

KEPT = 50
_QUIET_NS = 250_000_000
"""A burst ends after this time without an addition: hosts detect a fault within some RTTs."""
_LONGEST_NS = 1_000_000_000
"""Maximum delay of a burst. Both are shorter where the network is faster than usual."""


class TickerLine(NamedTuple):
    """Line number `n`; the first is 1. `kind`: fault, heal, map, ev, plane, port, qp or note."""

    n: int
    t_ns: int
    kind: str
    text: str


@dataclass(slots=True)
class Burst:
    """The same report by several hosts, with its subjects."""

    kind: str
    words: Callable[[Burst], str]
    first_ns: int
    last_ns: int
    count: int = 0
    hosts: dict[str, None] = field(default_factory=dict)
    places: dict[Hashable, None] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """The host's name, or the number of hosts."""
        return named(self.hosts, "hosts")


def named(names: Iterable[object], many: str, at_most: int = 1) -> str:
    """The names, or their number if more than `at_most`."""
    found = [str(name) for name in names]
    return ", ".join(found) if len(found) <= at_most else f"{len(found)} {many}"


class Ticker:
    """Lines in display order."""

    def __init__(self, shape: Shape) -> None:
        self._quiet_ns, self._longest_ns = map(shape.least_ns, (_QUIET_NS, _LONGEST_NS))
        self._lines: deque[TickerLine] = deque(maxlen=KEPT)
        self._count = 0
        self._bursts: dict[Hashable, Burst] = {}

    def say(self, t_ns: int, kind: str, text: str) -> None:
        """Add a line, after everything that began before it."""
        self._publish([key for key, burst in self._bursts.items() if burst.first_ns < t_ns])
        self._add(t_ns, kind, text)

    def gather(
        self, t_ns: int, kind: str, key: Hashable, host: str, place: Hashable, words: Callable[[Burst], str]
    ) -> None:
        """Add to the burst `key` of this kind, or start it. `words` makes its text at its end."""
        burst = self._bursts.get((kind, key))
        if burst is None:
            burst = self._bursts[kind, key] = Burst(kind, words, t_ns, t_ns)
        burst.last_ns = max(burst.last_ns, t_ns)
        burst.count += 1
        burst.hosts[host] = burst.places[place] = None

    def lines(self, now_ns: int) -> tuple[TickerLine, ...]:
        """The latest lines, the newest last."""
        self._publish([key for key, burst in self._bursts.items() if self._due(burst, now_ns)])
        return tuple(self._lines)

    def _due(self, burst: Burst, now_ns: int) -> bool:
        """True when it is to be shown."""
        return now_ns - burst.last_ns >= self._quiet_ns or now_ns - burst.first_ns >= self._longest_ns

    def _publish(self, keys: list[Hashable]) -> None:
        for burst in sorted((self._bursts.pop(key) for key in keys), key=lambda burst: burst.first_ns):
            self._add(burst.first_ns, burst.kind, burst.words(burst))

    def _add(self, t_ns: int, kind: str, text: str) -> None:
        self._count += 1
        self._lines.append(TickerLine(self._count, t_ns, kind, text))
