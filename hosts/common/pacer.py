"""One token bucket per NIC port, because a virtual interface has no line rate of its own (ours)."""

from __future__ import annotations

from math import gcd

from mrc_testbed.hosts.common.timers import NEVER

BURST_PACKETS = 4
"""Full data packets a port may send back to back after being idle (ours)."""
_NS_BITS = 8 * 10**9


class Pacer:
    """Each plane has the time at which its port will have sent everything handed to it so far.

    A data packet may go while that time is less than a burst ahead of now. Control packets never wait but are
    charged, so that a port's total stays at its rate.
    """

    __slots__ = ("_busy_until", "_frame_bytes", "_ns_bits", "_per", "burst_ns", "enabled")

    def __init__(
        self,
        planes: int,
        rate_bps: int,
        packet_bytes: int,
        frame_bytes: int,
        enabled: bool,
        least_burst_ns: int = 0,
    ) -> None:
        """`packet_bytes`: UDP payload of a full data packet; `frame_bytes`: what the wire carries beside it."""
        self.enabled = enabled
        shared = gcd(_NS_BITS, rate_bps)
        self._ns_bits, self._per = _NS_BITS // shared, rate_bps // shared
        self._frame_bytes = frame_bytes
        self._busy_until = [0] * planes
        self.burst_ns = max((BURST_PACKETS - 1) * self.cost_ns(packet_bytes), least_burst_ns)
        """How far ahead of now a port may be given packets: it runs dry when nobody sends for so long."""

    def cost_ns(self, size: int) -> int:
        """How long a port takes to send a datagram of `size` bytes."""
        return (size + self._frame_bytes) * self._ns_bits // self._per

    def ready_at(self, plane: int) -> int:
        """When the next data packet may go on `plane` (in the past: now)."""
        return self._busy_until[plane] - self.burst_ns if self.enabled else 0

    def hold(self, plane: int, now_ns: int) -> int:
        """The port of `plane` sends nothing from now on. Returns what it has been given in advance, in ns."""
        given_ns = max(self._busy_until[plane] - now_ns, 0)
        self._busy_until[plane] = NEVER
        return given_ns

    def release(self, plane: int, now_ns: int, given_ns: int) -> None:
        """It goes on with what it had been given."""
        self._busy_until[plane] = now_ns + given_ns

    def charge(self, plane: int, size: int, now_ns: int) -> None:
        """A datagram of `size` bytes (UDP payload) is handed to the port of `plane`. What still goes while the port is
        held, as control packets do, costs nothing."""
        busy = self._busy_until[plane]
        if busy == NEVER:
            return
        cost = (size + self._frame_bytes) * self._ns_bits // self._per
        self._busy_until[plane] = (busy if busy > now_ns else now_ns) + cost
