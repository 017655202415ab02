"""State reported by hosts: NIC ports, goodput, lateness of timers. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mrc_testbed.topos.shape import Shape

_RATE_OVER_NS = 1_000_000_000
"""Averaging time of rates: in a fifth of a second a host of a slow fabric sends only a few dozen packets.
Where the network is faster than usual, less."""


class _Sent(NamedTuple):
    t_ns: int
    packets: int
    again: int
    bytes: int


class HostState:
    """One host. `ports`: the state of each plane's port, from `port_state` events."""

    def __init__(self, shape: Shape) -> None:
        self.ports = ["UP"] * shape.planes
        self.lateness: Mapping[str, int] = {}
        self.drops = 0
        """Datagrams lost in its full receive buffers."""
        self._over_ns = shape.least_ns(_RATE_OVER_NS)
        self._sent: deque[_Sent] = deque()

    def snapshot(self, t_ns: int, event: Mapping[str, Any]) -> None:
        """Add the counters of a moment."""
        counters = event["counters"]
        self.lateness = event.get("lateness", {})
        self.drops = counters["receive_buffer_drops"]
        self._sent.append(_Sent(t_ns, counters["data_sent"], counters["retransmitted"], counters["bytes_sent"]))
        while len(self._sent) > 2 and t_ns - self._sent[1].t_ns >= self._over_ns:
            self._sent.popleft()

    @property
    def goodput_bps(self) -> int:
        """Payload rate of first transmissions, assuming that retransmissions have the average packet size."""
        if len(self._sent) < 2:
            return 0
        before, now = self._sent[0], self._sent[-1]
        packets = now.packets - before.packets
        if packets <= 0 or now.t_ns <= before.t_ns:
            return 0
        first = max(0, packets - (now.again - before.again)) / packets
        return round((now.bytes - before.bytes) * first * 8e9 / (now.t_ns - before.t_ns))


class HostStates:
    """The hosts with a daemon. `names`: all hosts of the fabric."""

    def __init__(self, names: Iterable[str], shape: Shape) -> None:
        self._hosts = {name: HostState(shape) for name in names}
        self._drops_before = 0

    def snapshot(self, host: str, event: Mapping[str, Any]) -> None:
        """Take a `snapshot` event of a host: counters and lateness."""
        self._hosts[host].snapshot(event["t_ns"], event)

    def port(self, host: str, plane: int, state: str) -> None:
        """Set the state of a port of this host."""
        self._hosts[host].ports[plane] = state

    def begin(self) -> None:
        """Start counting drops."""
        self._drops_before = self._drops

    def fidelity(self) -> dict[str, Any]:
        """The daemons' part of fidelity.json, once all have reported it."""
        known = {name: host.lateness for name, host in self._hosts.items() if host.lateness}
        return {
            "lateness_p99_ns": {name: lateness["p99_ns"] for name, lateness in known.items()},
            "lateness_max_ns": {name: lateness["max_ns"] for name, lateness in known.items()},
            "udp_rcvbuf_errors": self._drops - self._drops_before,
        }

    def states(self) -> dict[str, dict[str, Any]]:
        """`{"h0": {"ports": ["UP", ...], "goodput_bps": 1000}}`."""
        return {
            name: {"ports": list(host.ports), "goodput_bps": host.goodput_bps} for name, host in self._hosts.items()
        }

    @property
    def _drops(self) -> int:
        return sum(host.drops for host in self._hosts.values())
