"""One remote host as the QPs to it see it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


class RcPeer:
    """Its ports, (plane, address) each. QPs are dealt out to them in turn and then stay where they are."""

    __slots__ = ("_next", "number", "ports", "rtt_ns")

    def __init__(self, number: int, ports: Sequence[tuple[int, Hashable]]) -> None:
        self.number = number
        self.ports = list(ports)
        self._next = 0
        self.rtt_ns: int | None = None
        """Smallest round trip seen."""

    def next_port(self) -> tuple[int, Hashable]:
        """The port whose turn it is."""
        port = self.ports[self._next]
        self._next = (self._next + 1) % len(self.ports)
        return port

    def take_rtt(self, rtt_ns: int) -> None:
        """One round trip was seen."""
        if self.rtt_ns is None or rtt_ns < self.rtt_ns:
            self.rtt_ns = rtt_ns
