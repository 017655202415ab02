"""Simulated switches: every port has a rate, an ECN ramp, trimming, and a class that goes first (digest 5.3).

Two groups of hosts, each with a T0 a plane; one T1 an uplink. A packet waits in the ports of its way, one after the
other: T0 up and T1 down towards the other group, and T0 down to the host, which does not mark.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hosts import wire

WIRE_OVERHEAD = 102
RAMP = (0.2, 0.8)
"""Backlog, in bandwidth-delay products of the plane, at which marking begins and at which everything is marked."""
TRIM_AT = 1.0
TRIM_AT_LAST_HOP = 1.5
DROP_AT = 3.0
"""Backlog of control and trimmed packets at which they are dropped."""


@dataclass
class Port:
    """One output port. `busy` and `high_busy`: when all, and when all of the high class, will have been sent."""

    rate_bps: int
    last_hop: bool
    dead: bool = False
    busy: int = 0
    high_busy: int = 0
    trimmed: int = 0
    marked: int = 0
    bytes: int = 0
    deepest_ns: int = 0

    def cost(self, packet):
        """Time a packet takes on the wire."""
        return (len(packet) + WIRE_OVERHEAD) * 8_000_000_000 // self.rate_bps


class Switches:
    """All ports, by name: ("up", group, plane, uplink), ("down", group, plane, uplink), ("host", host, plane).

    Thresholds are bandwidth-delay products of a plane at its nominal rate, as bytes: the delay of a full port that has
    a lower rate is longer.
    """

    def __init__(self, hosts, rate_bps, t_ns, random):
        self._hosts, self._random = hosts, random
        self._bdp_ns = t_ns
        self._nominal = rate_bps
        self.ports = defaultdict(lambda: Port(rate_bps, last_hop=False))
        for host in range(hosts):
            for plane in range(16):
                self.ports["host", host, plane] = Port(rate_bps, last_hop=True)

    def group(self, host):
        """Which T0s a host is on."""
        return int(host >= self._hosts / 2)

    def local(self, a, b):
        """Are two hosts on the same T0s? Then there is one path a plane."""
        return self.group(a) == self.group(b)

    def way(self, src, dst, plane, uplink):
        """The ports between two hosts."""
        last = ("host", dst, plane)
        if self.local(src, dst):
            return (last,)
        return (("up", self.group(src), plane, uplink), ("down", self.group(dst), plane, uplink), last)

    def total(self, what, last_hop):
        """Sum of one count over all last hops, or over all other ports."""
        return sum(getattr(port, what) for port in self.ports.values() if port.last_hop is last_hop)

    def serve(self, name, now, traffic_class, packet):
        """Through one port: (wait, traffic class, packet), None when it is lost."""
        port = self.ports[name]
        if port.dead:
            return None
        if traffic_class & wire.ECN_MASK:
            backlog = (port.busy - now) / self._bdp_ns * port.rate_bps / self._nominal
            if backlog <= (TRIM_AT_LAST_HOP if port.last_hop else TRIM_AT):
                return self._data(port, now, backlog, traffic_class, packet)
            port.trimmed += 1
            traffic_class = (wire.DSCP_TRIMMED_LASTHOP if port.last_hop else wire.DSCP_TRIMMED) << 2
            packet = packet[: 40 if packet[0] in wire.HAS_IMMEDIATE else 36]
        return self._control(port, now, traffic_class, packet)

    def _data(self, port, now, backlog, traffic_class, packet):
        if not port.last_hop and self._random.random() < (backlog - RAMP[0]) / (RAMP[1] - RAMP[0]):
            port.marked += 1
            traffic_class |= wire.ECN_CE
        cost = port.cost(packet)
        port.bytes += len(packet)
        port.busy = max(port.busy, now) + cost
        port.deepest_ns = max(port.deepest_ns, port.busy - now)
        return port.busy - now, traffic_class, packet

    def _control(self, port, now, traffic_class, packet):
        """Goes before all data; those are later by it."""
        if port.high_busy - now > DROP_AT * self._bdp_ns:
            return None
        cost = port.cost(packet)
        port.busy = max(port.busy, now) + cost
        port.high_busy = max(port.high_busy, now) + cost
        return port.high_busy - now, traffic_class, packet
