"""The endpoint: one per host, no sockets and no clock of its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from hosts.core.config import EndpointConfig, QpAttributes
from hosts.core.events import Event

PathId = tuple[int, int]
"""(plane, uplink)."""


@dataclass(frozen=True, slots=True)
class PathReport:
    """What EV probes have shown about the paths to one peer."""

    answered: list[PathId]
    silent: list[PathId]
    rtt_ns: int | None
    """Smallest round trip seen to this peer, None before the first."""


class Endpoint:
    """MRC endpoint of one host.

    Input: `handle_datagram`, `handle_timeout`. Application: `add_peer`, `open_qp`, `connect_qp`, `post_write`,
    `probe_paths`. Output: after every input or application call poll, in this order, `poll_event` until None,
    `poll_transmit` until None, then re-arm one timer at `next_timeout`. Times are integer nanoseconds of one
    monotonic clock; a `now_ns` smaller than an earlier one is a caller's mistake.
    """

    def __init__(self, config: EndpointConfig) -> None: ...

    def add_peer(self, peer: int, paths: Sequence[tuple[int, int, Hashable]]) -> None:
        """Make host `peer` known. `paths`: (plane, uplink, token); the token comes back from `poll_transmit`."""
        raise NotImplementedError

    def open_qp(self, peer: int, region_bytes: int, initial_psn: int | None = None) -> QpAttributes:
        """RESET -> INIT: register a region of zeros; the result must reach the peer's `connect_qp`."""
        raise NotImplementedError

    def connect_qp(self, qpn: int, remote: QpAttributes) -> None:
        """INIT -> RTR -> RTS."""
        raise NotImplementedError

    def region(self, qpn: int) -> memoryview:
        """The registered region, writable; the peer's data appears here."""
        raise NotImplementedError

    def handle_datagram(
        self,
        view: memoryview,
        peer: int,
        flow_label: int,
        udp_port: int,
        traffic_class: int,
        arrival_ns: int,
        now_ns: int,
    ) -> None:
        """Take in one UDP payload from host `peer`.

        `flow_label` and `udp_port` are the packet's EV[31:16] and EV[15:0] (source port). `arrival_ns` is when it
        reached this host, delay line included, and is what RTTs are taken from; `now_ns` >= `arrival_ns` is the time
        of the call. The view is not kept.
        """
        raise NotImplementedError

    def handle_timeout(self, now_ns: int) -> None:
        """Run every timer that is due. Calling it early or late is allowed."""
        raise NotImplementedError

    def post_write(
        self,
        qpn: int,
        data: memoryview | bytes | bytearray,
        remote_address: int,
        wr_id: int,
        immediate: int | None = None,
    ) -> None:
        """Queue one WRITE (with `immediate`: WRITE-with-IMM). `data` is not copied: leave it alone until completion."""
        raise NotImplementedError

    def probe_paths(self, peer: int, now_ns: int) -> None:
        """Send one EV probe on every path to `peer` (warm-up). States do not change by it."""
        raise NotImplementedError

    def path_report(self, peer: int) -> PathReport:
        """Which paths to `peer` ever answered a probe, and the smallest RTT."""
        raise NotImplementedError

    def poll_event(self) -> Event | None:
        """Next event, oldest first; None when there is none."""
        raise NotImplementedError

    def poll_transmit(self, now_ns: int, buffer: memoryview) -> tuple[int, Hashable, int] | None:
        """Write the next datagram into `buffer` (at least 4,200 bytes): (size, token, traffic class), or None."""
        raise NotImplementedError

    def next_timeout(self) -> int | None:
        """When to call `handle_timeout` or `poll_transmit` next at the latest; None: no need to."""
        raise NotImplementedError

    def counters(self) -> dict[str, int]:
        """All counters so far, flat."""
        raise NotImplementedError

    def path_packets(self, peer: int) -> dict[PathId, int]:
        """Data packets (retransmissions included) sent on each path to `peer`."""
        raise NotImplementedError
