"""One remote host as the QPs to it see it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mrc_testbed.hosts.common.ecmp import hash_of_ports, next_hop
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.context import RcContext, Way
from mrc_testbed.hosts.rc.planes import Planes

_UDP = 17
"""Its protocol number."""


class RcPeer:
    """Its ports, (plane, address) each. QPs are dealt out to them in turn, or hashed to them, and then stay there; or
    each uses them all."""

    __slots__ = ("_hash_seed", "_next", "_spreads", "number", "planes", "ports", "rtt_ns")

    def __init__(self, number: int, ports: Sequence[tuple[int, Hashable]], context: RcContext) -> None:
        self._hash_seed = context.config.hash_seed
        self.number = number
        self.ports = list(ports)
        self.planes = Planes(context, [plane for plane, _ in ports])
        """Of QPs that use them all."""
        self._spreads = context.config.spreads
        self._next = 0
        self.rtt_ns: int | None = None
        """Smallest round trip seen."""

    def next_turn(self) -> int:
        """For one more QP."""
        turn = self._next
        self._next = (turn + 1) % len(self.ports)
        return turn

    def ways(self, local_qpn: int, remote_qpn: int, turn: int) -> list[Way]:
        """Those of a QP whose turn was `turn`: one, or one in each plane."""
        if not self._spreads:
            source_port = wire.source_port(local_qpn, remote_qpn)
            plane, address = self._port_for(source_port, turn)
            return [_way(plane, source_port, address)]
        return [_way(plane, wire.source_port(local_qpn, remote_qpn, plane), address) for plane, address in self.ports]

    def _port_for(self, source_port: int, turn: int) -> tuple[int, Hashable]:
        if self._hash_seed is not None:
            hashed = hash_of_ports(_UDP, (source_port, wire.UDP_PORT), self._hash_seed)
            return self.ports[next_hop(hashed, len(self.ports))]
        return self.ports[turn]

    def take_rtt(self, rtt_ns: int) -> None:
        """One round trip was seen."""
        if self.rtt_ns is None or rtt_ns < self.rtt_ns:
            self.rtt_ns = rtt_ns


def _way(plane: int, source_port: int, address: Hashable) -> Way:
    return plane, (source_port, (address, wire.UDP_PORT, 0, 0))
