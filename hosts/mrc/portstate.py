"""The states of NIC ports, and the ports of one host as its own endpoint or a peer sees them (P1 3).

Which state follows which: docs/protocol.md, "Ports".

Port number = plane number + 1 on the wire (API: ports count from 1), bit n - 1 of a mask is port n.
"""

from __future__ import annotations

from enum import Enum

from mrc_testbed.hosts.common.transitions import step


class PortState(Enum):
    """May packets leave and arrive by this port?"""

    UP = "UP"
    DOWN = "DOWN"
    """No carrier, or its host says so."""
    RISING = "RISING"
    """Said to be back; one probe over its plane has yet to be answered, for a flapping port says so often."""


class PortInput(Enum):
    """What can happen to a port."""

    LOST = "carrier lost"
    CARRIER = "carrier"
    ANSWERED = "probe answered"


TRANSITIONS: dict[tuple[PortState, PortInput], PortState] = {
    (PortState.UP, PortInput.LOST): PortState.DOWN,
    (PortState.DOWN, PortInput.CARRIER): PortState.RISING,
    (PortState.RISING, PortInput.LOST): PortState.DOWN,
    (PortState.RISING, PortInput.ANSWERED): PortState.UP,
}


class PortTable:
    """The ports of one host, one a plane, all UP at first."""

    __slots__ = ("_since_ns", "_states", "all_ports", "carrier_mask", "down_mask")

    def __init__(self, planes: int) -> None:
        self._states = [PortState.UP] * planes
        self._since_ns = [0] * planes
        self.all_ports = (1 << planes) - 1
        self.down_mask = 0
        """Ports that data must not use."""
        self.carrier_mask = self.all_ports
        """Ports that are not DOWN: the others cannot even be probed."""

    def state(self, plane: int) -> PortState:
        """Of the port of this plane."""
        return self._states[plane]

    def since_ns(self, plane: int) -> int:
        """When the port of this plane came into its state."""
        return self._since_ns[plane]

    def step(self, plane: int, event: PortInput, now_ns: int) -> bool:
        """Take the table's step; False when nothing changes."""
        new = step(TRANSITIONS, self._states[plane], event)
        if new is None:
            return False
        self._states[plane] = new
        self._since_ns[plane] = now_ns
        bit = 1 << plane
        self.down_mask = self.down_mask & ~bit if new is PortState.UP else self.down_mask | bit
        self.carrier_mask = self.carrier_mask & ~bit if new is PortState.DOWN else self.carrier_mask | bit
        return True
