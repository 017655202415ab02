"""Traffic classes by DSCP, and what trimming leaves of a packet: the same for switch ports of both worlds.

Usual values are those of the endpoints (hosts/mrc/wire.py), which a unit test compares.
"""

from __future__ import annotations

from dataclasses import dataclass

STAMPED_BYTES = 20
"""Of the UDP payload, up to PSN and time stamp."""


@dataclass(frozen=True, slots=True)
class DscpMarks:
    """What hosts write into packets (an operator's choice): `data` and `retransmission` may be trimmed, what is
    `no_trim` waits with them, `control` goes first."""

    data: int = 4
    retransmission: int = 8
    no_trim: int = 0
    control: int = 46

    @property
    def trimmable(self) -> frozenset[int]:
        """Of packets whose payload may be cut off."""
        return frozenset((self.data, self.retransmission))


@dataclass(frozen=True, slots=True)
class TrimRules:
    """What a port does to a packet that it trims.

    `size_bytes`: of the frame that is left, from Ethernet on and without FCS; 0: all headers and no payload. `dscp`,
    at ports towards hosts `dscp_last_hop`: what the packet is marked with. `first`: it goes before data from there on;
    else it waits with data, and is dropped with them. `rewrite_length`: all headers say what is left; else the outer
    DSCP alone is changed, and lengths and the inner DSCP say what was sent.
    """

    size_bytes: int = 0
    dscp: int = 12
    dscp_last_hop: int = 16
    first: bool = True
    rewrite_length: bool = True

    def mark(self, last_hop: bool) -> int:
        """The DSCP that a port writes; `last_hop`: it is one towards a host."""
        return self.dscp_last_hop if last_hop else self.dscp

    def left_bytes(self, frame_bytes: int, header_bytes: int) -> int:
        """How much is left of the UDP payload. `frame_bytes`: of the frame up to it; `header_bytes`: its headers."""
        return self.size_bytes - frame_bytes if self.size_bytes else header_bytes


def least_trim_bytes(frame_bytes: int) -> int:
    """The least size that keeps PSN and time stamp, without which nobody can ask for the packet again."""
    return frame_bytes + STAMPED_BYTES


USUAL_MARKS = DscpMarks()
USUAL_TRIMMING = TrimRules()
