"""One remote host as the QPs to it see it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mrc_testbed.hosts.common.ecmp import hash_of_ports, next_hop
from mrc_testbed.hosts.rc import wire

_UDP = 17
"""Its protocol number."""


class RcPeer:
    """Its ports, (plane, address) each. QPs are dealt out to them in turn, or hashed to them, and then stay there."""

    __slots__ = ("_hash_seed", "_next", "number", "ports", "rtt_ns")

    def __init__(self, number: int, ports: Sequence[tuple[int, Hashable]], hash_seed: int | None = None) -> None:
        self._hash_seed = hash_seed
        self.number = number
        self.ports = list(ports)
        self._next = 0
        self.rtt_ns: int | None = None
        """Smallest round trip seen."""

    def next_turn(self) -> int:
        """For one more QP."""
        turn = self._next
        self._next = (turn + 1) % len(self.ports)
        return turn

    def port_for(self, source_port: int, turn: int) -> tuple[int, Hashable]:
        """The port for a QP with this UDP source port, whose turn was `turn`."""
        if self._hash_seed is not None:
            hashed = hash_of_ports(_UDP, (source_port, wire.UDP_PORT), self._hash_seed)
            return self.ports[next_hop(hashed, len(self.ports))]
        return self.ports[turn]

    def take_rtt(self, rtt_ns: int) -> None:
        """One round trip was seen."""
        if self.rtt_ns is None or rtt_ns < self.rtt_ns:
            self.rtt_ns = rtt_ns
