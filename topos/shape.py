"""The shape of a fabric, whatever its family, and its limits from the uSID plan and the packet rates."""

from __future__ import annotations

from dataclasses import dataclass

from mrc_testbed.topos.graph import Family, ShapeError, within
from mrc_testbed.topos.units import rate_text, time_text

MAX_PLANES = 16
"""A uSID has four bits for the plane."""
PAYLOAD_BYTES = 4096
"""Usual data per packet: the path MTU of MRC's API example; the emulation's cost is per packet, not per byte."""
HEADER_BYTES = 14 + 40 + 40 + 8 + 12 + 4 + 4 + 16 + 4
"""Overhead of MRC's data packets on a veth: Ethernet, two IPv6, UDP, BTH, METH, TSETH, RETH, ICRC."""
WIRE_BYTES = PAYLOAD_BYTES + HEADER_BYTES
"""The largest data packet as HTB counts it: what queues and buffers are made for."""
LEAST_PLANE_PACKETS = 14
"""Full packets that a plane is taken to hold in T at least, for the levels of switch ports and for what is queued. With
fewer, the ECN ramp and the trim threshold would be less than a packet apart."""
MIN_RATE_BPS = 100_000
MAX_RATE_BPS = 800_000_000_000
"""A whole NIC of today on one plane."""
MIN_RTT_NS = 0
MAX_RTT_NS = 10_000_000_000
SWIFT_BELOW_NS = 1_000_000
"""A shorter T can only be that of hardware: daemons need as long for a turn. 0 is none at all."""
SWIFT_PACKET_NS = 150_000
"""So is a port that sends a full packet in less: late turns of daemons would leave it idle."""
USUAL_RTT_NS = 20_000_000
USUAL_PACKET_NS = 2_500_000
"""T, and the time of a full packet at a port, that the least times of daemons are made for."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`planes` times the plane that `family` describes; a host has one port in each.

    `rtt_ns` is T, the round-trip time of the delay element, without serialisation on the links. Raises ShapeError if
    the uSID plan cannot number the fabric (`mrc_testbed.topos.usid`).
    """

    planes: int
    family: Family
    port_rate_bps: int
    rtt_ns: int
    payload_bytes: int = PAYLOAD_BYTES
    """Data of a full packet, as the endpoints are told."""
    header_bytes: int = HEADER_BYTES
    """What a data packet has besides, on a veth."""
    speed: int = 1
    """How many times faster all of it is than what the least times of software are made for."""
    cut_bytes: int = 0
    """Endpoints cut each message evenly over the ports, in parts of a multiple of this; 0: they do not."""
    open_messages: int = 0
    """Messages of a QP that may be under way at once (`max_wimm`); 0: all that are queued."""

    def __post_init__(self) -> None:
        within("planes", self.planes, 1, MAX_PLANES, "a uSID has 4 bits for the plane")
        most_bps = MAX_RATE_BPS * (MAX_PLANES if self.planes == 1 else 1)  # planes can be folded into one
        within("port_rate", self.port_rate_bps, MIN_RATE_BPS, most_bps, shown=rate_text)
        if (slowest_bps := round(self.port_rate_bps * self.family.least_share)) < MIN_RATE_BPS:
            raise ShapeError(
                "port_rate", f"the slowest links would have {rate_text(slowest_bps)}, under {rate_text(MIN_RATE_BPS)}"
            )
        within("rtt", self.rtt_ns, MIN_RTT_NS, MAX_RTT_NS, shown=time_text)

    @property
    def swift(self) -> int:
        """How many times faster than daemons hosts and switches would be that are made for it: `speed`, and more where
        T or the ports, as written, are those of hardware. Least times that only software needs are divided by it; what
        people set in seconds is divided by `speed`."""
        rtt_ns, packet_ns = self.rtt_ns * self.speed, self.speed * 8_000_000_000 * self.wire_bytes // self.port_rate_bps
        by_rtt = -(-USUAL_RTT_NS // rtt_ns) if 0 < rtt_ns < SWIFT_BELOW_NS else 1
        by_rate = -(-USUAL_PACKET_NS // max(packet_ns, 1)) if packet_ns < SWIFT_PACKET_NS else 1
        return self.speed * max(by_rtt, by_rate)

    def least_ns(self, usual_ns: int) -> int:
        """A least time or a pause of software at this speed."""
        return max(usual_ns // self.speed, 1)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.family.hosts

    @property
    def switches(self) -> int:
        """Number of switches over all planes."""
        return self.planes * sum(self.family.tiers)

    @property
    def links(self) -> int:
        """Number of links: host ports, and those between switches."""
        return self.planes * (self.hosts + self.family.cable_count)

    @property
    def wire_bytes(self) -> int:
        """A full data packet as HTB counts it."""
        return self.payload_bytes + self.header_bytes

    @property
    def port_pps(self) -> float:
        """Full data packets per second that one port carries."""
        return self.port_rate_bps / (8 * self.wire_bytes)

    @property
    def fabric_pps(self) -> float:
        """Data packets per second with every host at full rate: the load on the machine's packet budget."""
        return self.port_pps * self.planes * self.hosts

    @property
    def plane_bdp_packets(self) -> float:
        """Packets per plane in one T. With few of them ports mark and trim in steps of a packet
        (`mrc_testbed.topos.in_flight`)."""
        return self.port_pps * self.rtt_ns / 1e9


def burst_bytes(rate_bps: int) -> int:
    """Burst of a shaper: two packets, or what the link carries in a millisecond, because a late timer would otherwise
    cost rate."""
    return max(2 * WIRE_BYTES, rate_bps // 8000)
