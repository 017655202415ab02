"""The paths to one peer: their state, and what the application hears when it changes."""

from __future__ import annotations

from collections.abc import Hashable

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc.evstate import EvState

PathId = tuple[int, int]
"""(plane, uplink)."""


class Path:
    """One EV: plane and T0 uplink, the caller's token to send on it, and its history."""

    __slots__ = (
        "answered",
        "congested",
        "ev",
        "floored",
        "index",
        "label",
        "last_tx_ns",
        "losses_ns",
        "lost",
        "penalty",
        "plane",
        "probed_ns",
        "probes_needed",
        "restored_ns",
        "sent",
        "skipped",
        "skipped_ns",
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
        self.lost = 0
        """Of these, those that vanished without explanation."""
        self.losses_ns: list[int] = []
        """When it lost packets lately, too few to fail it."""
        self.last_tx_ns = 0
        self.answered = False
        """Has an EV probe on it ever been answered?"""
        self.probes_needed = 0
        """Consecutive answers asked for at its last failure; 0: it never failed."""
        self.restored_ns = 0
        self.penalty = 0
        """Turns of its plane this EV has to be passed over, > 0 in SKIP."""
        self.skipped = 0
        """Grows with every entry into SKIP: the smallest was skipped longest ago."""
        self.congested = 0
        """Times in a row that it met congestion again after its rest."""
        self.skipped_ns = -NEVER
        """When it last went to SKIP, or met congestion again there."""
        self.floored = False
        """Has it lost a packet and been kept because too few others were left?"""
        self.probed_ns = -1
        """When the last EV probe on it that was answered had been sent."""
