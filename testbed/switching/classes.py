"""Traffic classes by DSCP, and what trimming leaves of a packet: the same for switch ports of both worlds.

Usual values are those of the endpoints (hosts/mrc/wire.py), which a unit test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

STAMPED_BYTES = 20
"""Of the UDP payload, up to PSN and time stamp."""
DSCPS = 64
OPCODES = 256


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
class DataPackets:
    """How switch ports know the data of a transport among its packets to UDP port 4791; the others are its control.

    `headers`: by opcode, the first byte of the UDP payload, the bytes of a data packet's headers from there on (1 to
    255): trimming leaves them, and corruption spares them. `by_opcode`: data are packets with one of these opcodes;
    else the DSCP alone tells. `dscps`: the DSCPs that data have; empty: any with `by_opcode`, else any but that of
    control. Raises ValueError for numbers that are none of these, and `by_opcode` without any opcode.
    """

    headers: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    by_opcode: bool = False
    dscps: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if any(not 0 <= opcode < OPCODES or not 0 < size < OPCODES for opcode, size in self.headers.items()):
            raise ValueError("headers: opcodes are from 0 to 255, and the bytes of their headers from 1 to 255")
        if any(not 0 <= dscp < DSCPS for dscp in self.dscps):
            raise ValueError("dscps: must be from 0 to 63")
        if self.by_opcode and not self.headers:
            raise ValueError("by_opcode: `headers` names no opcode, so no packet would be data")

    @property
    def header_bytes(self) -> bytes:
        """By opcode; 0 where it is not one of `headers`."""
        return bytes(self.headers.get(opcode, 0) for opcode in range(OPCODES))

    def data_dscps(self, marks: DscpMarks) -> frozenset[int]:
        """The DSCPs that a data packet may have."""
        return self.dscps or frozenset(range(DSCPS)) - (frozenset() if self.by_opcode else {marks.control})


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
MRC_DATA = DataPackets({**dict.fromkeys(range(0xC6, 0xCC), 36), 0xC9: 40, 0xCB: 40})
"""WRITE packets behind BTH, METH, TSETH, RETH, and ImmDt where there is one. Probes that wait with the data are data to
a switch."""
ROCE_DATA = DataPackets(dict.fromkeys(range(0x0C), 32), by_opcode=True)
"""SEND and RDMA WRITE: FIRST, MIDDLE, LAST, ONLY, with immediate or without. The headers are all that one may have:
BTH, RETH, ImmDt."""
