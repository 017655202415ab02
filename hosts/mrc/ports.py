"""This host's own NIC ports: which planes it can use at all (P1 3; docs/protocol.md, "Ports")."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from mrc_testbed.hosts.mrc.events import Event, PortChanged
from mrc_testbed.hosts.mrc.portstate import PortInput, PortTable


class PortUser(Protocol):
    """What a peer does when a port of this host changes."""

    def port_changed(self, plane: int, now_ns: int) -> None:
        """Leave the plane, or return to it."""

    def announce_ports(self, now_ns: int) -> None:
        """Send Port Status Updates until one is answered."""


class LocalPorts:
    """This host's own ports. Every change reaches all peers' planes before the call returns."""

    __slots__ = ("_events", "_peers", "table")

    def __init__(self, planes: int, events: deque[Event]) -> None:
        self._events = events
        self._peers: list[PortUser] = []
        self.table = PortTable(planes)

    def join(self, peer: PortUser) -> None:
        """A peer to keep informed."""
        self._peers.append(peer)

    def step(self, plane: int, event: PortInput, now_ns: int) -> bool:
        """Something happened to the port of `plane`; True when its state changed."""
        old_mask = self.table.down_mask
        if not self.table.step(plane, event, now_ns):
            return False
        self._events.append(PortChanged(None, plane, self.table.state(plane)))
        for peer in self._peers:
            peer.port_changed(plane, now_ns)
            if self.table.down_mask != old_mask:
                peer.announce_ports(now_ns)
        return True
