"""Whether ports kept to their rates over a run, as a figure of its fidelity."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from mrc_testbed.topos.shape import burst_bytes

WINDOW_NS = 1_000_000_000
Port = tuple[str, str]
"""Node and name."""


class ShapeWatch:
    """How far any port exceeded the rate of its link, over windows of a second, or `window_ns`.

    The burst that a shaper allows after a pause is excluded: at a low rate it is a good part of a second.
    """

    def __init__(self, rates_bps: Mapping[Port, int], window_ns: int = WINDOW_NS) -> None:
        """`rates_bps`: of every port by node and name."""
        self._rates_bps = rates_bps
        self._window_ns = window_ns
        self._seen: deque[tuple[int, dict[Port, int]]] = deque()
        self.error: float | None = None

    def sample(self, t_ns: int, rows: list[tuple[Any, ...]]) -> None:
        """Add one sample of the interface counters (rows of Fabric.sample_ports)."""
        sent = {(row[0], row[1]): row[5] for row in rows}
        self._seen.append((t_ns, sent))
        while t_ns - self._seen[0][0] >= self._window_ns:
            before_ns, before = self._seen.popleft()
            for rate_bps, most in self._most(before, sent):
                rate = max(0, most - burst_bytes(rate_bps)) * 8e9 / (t_ns - before_ns)
                self.error = max(self.error or 0.0, rate / rate_bps - 1)

    def _most(self, before: Mapping[Port, int], now: Mapping[Port, int]) -> Iterable[tuple[int, int]]:
        """For each rate the most bytes that a port of it has sent."""
        most: dict[int, int] = {}
        for port, sent in now.items():
            rate_bps = self._rates_bps[port]
            most[rate_bps] = max(most.get(rate_bps, 0), sent - before[port])
        return most.items()
