"""The shape of a fabric and its limits from the uSID plan and the packet rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mrc_testbed.topos.units import rate_text, time_text

MAX_PLANES = 16
"""A uSID has four bits for the plane."""
MAX_INDEX = 256
"""A uSID has eight bits for the switch or downlink index."""
PAYLOAD_BYTES = 4096
"""Usual data per packet: the path MTU of MRC's API example; the emulation's cost is per packet, not per byte."""
HEADER_BYTES = 14 + 40 + 40 + 8 + 12 + 4 + 4 + 16 + 4
"""Overhead of MRC's data packets on a veth: Ethernet, two IPv6, UDP, BTH, METH, TSETH, RETH, ICRC."""
WIRE_BYTES = PAYLOAD_BYTES + HEADER_BYTES
"""The largest data packet as HTB counts it: what queues and buffers are made for."""
MIN_RATE_BPS = 100_000
MAX_RATE_BPS = 800_000_000_000
"""A whole NIC of today on one plane."""
MIN_RTT_NS = 0
MAX_RTT_NS = 10_000_000_000


class ShapeError(ValueError):
    """A shape outside the limits. `field` names the key, `limit` the violated rule."""

    def __init__(self, field: str, limit: str) -> None:
        super().__init__(f"{field}: {limit}")
        self.field = field
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Shape:
    """A multi-plane two-tier Clos: `planes` x (`t0_groups` T0 switches + `t1` T1 switches).

    Every host has one port per plane, to the T0 of its group there. Every T0 is linked to every T1 of its plane.
    `rtt_ns` is T, the round-trip time of the delay element, without serialisation on the links. Raises ShapeError if
    the uSID plan cannot number the fabric (`mrc_testbed.topos.usid`).
    """

    planes: int
    t0_groups: int
    t1: int
    hosts_per_t0: int
    port_rate_bps: int
    rtt_ns: int
    payload_bytes: int = PAYLOAD_BYTES
    """Data of a full packet, as the endpoints are told."""
    header_bytes: int = HEADER_BYTES
    """What a data packet has besides, on a veth."""
    speed: int = 1
    """How many times faster all of it is than what the least times of software are made for."""

    def __post_init__(self) -> None:
        _within("planes", self.planes, 1, MAX_PLANES, "a uSID has 4 bits for the plane")
        _within("t0_groups", self.t0_groups, 1, MAX_INDEX, "a uSID has 8 bits for the T0 index")
        _within("t1", self.t1, 0, MAX_INDEX, "a uSID has 8 bits for the T1 index")
        _within("hosts_per_t0", self.hosts_per_t0, 1, MAX_INDEX, "a uSID has 8 bits for the host downlink")
        most_bps = MAX_RATE_BPS if self.speed == 1 else MAX_RATE_BPS * MAX_PLANES  # planes can be folded into one
        _within("port_rate", self.port_rate_bps, MIN_RATE_BPS, most_bps, shown=rate_text)
        _within("rtt", self.rtt_ns, MIN_RTT_NS, MAX_RTT_NS, shown=time_text)
        if self.t0_groups > 1 and self.t1 == 0:
            raise ShapeError("t1", "must be at least 1 where there is more than one T0 group")
        if self.hosts < 2:
            raise ShapeError("hosts_per_t0", "the fabric needs at least 2 hosts in all")

    def least_ns(self, usual_ns: int) -> int:
        """A least time or a pause of software at this speed."""
        return max(usual_ns // self.speed, 1)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.t0_groups * self.hosts_per_t0

    @property
    def switches(self) -> int:
        """Number of switches over all planes."""
        return self.planes * (self.t0_groups + self.t1)

    @property
    def links(self) -> int:
        """Number of links: host ports and T0-T1 links."""
        return self.planes * (self.hosts + self.t0_groups * self.t1)

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
        (`mrc_testbed.topos.budget`)."""
        return self.port_pps * self.rtt_ns / 1e9


def burst_bytes(rate_bps: int) -> int:
    """Burst of a shaper: two packets, or what the link carries in a millisecond, because a late timer would otherwise
    cost rate."""
    return max(2 * WIRE_BYTES, rate_bps // 8000)


def _within(field: str, value: int, low: int, high: int, why: str = "", shown: Callable[[int], str] = str) -> None:
    if not low <= value <= high:
        reason = f" ({why})" if why else ""
        raise ShapeError(field, f"{shown(value)} is outside {shown(low)}..{shown(high)}{reason}")
