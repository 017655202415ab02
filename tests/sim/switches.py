"""Queues of simulated switches: rate, ECN ramp, trimming, priority of control and trimmed packets (digest 5.3)."""

from __future__ import annotations

from collections import defaultdict

from hosts import wire

WIRE_OVERHEAD = 102
RAMP = (0.2, 0.8)
"""Backlog, in bandwidth-delay products, at which marking begins and at which everything is marked."""
TRIM_AT = 1.0
TRIM_AT_LAST_HOP = 1.5


class Switches:
    """Two groups of hosts, each with a T0 a plane: an uplink port per (group, plane, uplink) and a port per host.

    `rates`: bits per second of single uplink ports by (group, plane, uplink), others have `rate_bps`.
    """

    def __init__(self, hosts, rate_bps, t_ns, random):
        self._hosts, self._rate, self._t_ns, self._random = hosts, rate_bps, t_ns, random
        self._busy = defaultdict(int)
        self.rates = {}
        self.marked = self.trimmed = self.trimmed_last_hop = 0

    def group(self, host):
        """Which T0s a host is on."""
        return int(host >= self._hosts / 2)

    def first_hops(self, now, src, plane, uplink, traffic_class, packet):
        """Through the uplink port: (wait, traffic class, packet)."""
        if not traffic_class & wire.ECN_MASK:
            return 0, traffic_class, packet
        up = (self.group(src), plane, uplink)
        backlog = self._backlog(up, now)
        if backlog > TRIM_AT:
            self.trimmed += 1
            return 0, wire.DSCP_TRIMMED << 2, self._cut(packet)
        if self._random.random() < (backlog - RAMP[0]) / (RAMP[1] - RAMP[0]):
            self.marked += 1
            traffic_class |= wire.ECN_CE
        return self._serve(up, now, packet, self.rates.get(up, self._rate)), traffic_class, packet

    def last_hop(self, now, dst, plane, traffic_class, packet):
        """Through the port to the host, called in the order of arrival there."""
        if not traffic_class & wire.ECN_MASK:
            return 0, traffic_class, packet
        if self._backlog((dst, plane), now) > TRIM_AT_LAST_HOP:
            self.trimmed_last_hop += 1
            return 0, wire.DSCP_TRIMMED_LASTHOP << 2, self._cut(packet)
        return self._serve((dst, plane), now, packet, self._rate), traffic_class, packet

    def _backlog(self, port, now):
        return max(self._busy[port] - now, 0) / self._t_ns

    def _serve(self, port, now, packet, rate):
        cost = (len(packet) + WIRE_OVERHEAD) * 8_000_000_000 // rate
        self._busy[port] = max(self._busy[port], now) + cost
        return self._busy[port] - now

    def _cut(self, packet):
        return packet[: 40 if packet[0] in wire.HAS_IMMEDIATE else 36]
