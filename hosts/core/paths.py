"""The paths to one peer: their state, and what the application hears when it changes."""

from __future__ import annotations

from collections.abc import Hashable

from hosts.core.evstate import EvState


class Path:
    """One EV: plane and T0 uplink, the caller's token to send on it, and its history."""

    __slots__ = (
        "answered",
        "ev",
        "index",
        "label",
        "last_tx_ns",
        "plane",
        "probes_needed",
        "restored_ns",
        "sent",
        "state",
        "token",
        "uplink",
    )

    def __init__(self, index: int, plane: int, uplink: int, token: Hashable, udp_port: int) -> None:
        self.index = index
        """Place in the peer's list of paths."""
        self.plane = plane
        self.uplink = uplink
        self.token = token
        self.label = plane << 8 | uplink
        """EV[31:16], the flow label."""
        self.ev = self.label << 16 | udp_port
        self.state = EvState.GOOD
        self.sent = 0
        """Data packets, retransmissions included."""
        self.last_tx_ns = 0
        self.answered = False
        """Has an EV probe on it ever been answered?"""
        self.probes_needed = 0
        """Consecutive answers asked for at its last failure; 0: it never failed."""
        self.restored_ns = 0
