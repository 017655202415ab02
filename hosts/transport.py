"""What a session needs of an endpoint, whatever its protocol is.

How each transport makes its endpoint and its sockets is in hosts/configure.py, what drives them in hosts/loops.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mrc_testbed.hosts.common.figures import PathReport, QpFlow, QpPackets
from mrc_testbed.hosts.control import Fields


class LocalQp(Protocol):
    """This side of an opened QP."""

    @property
    def qpn(self) -> int:
        """Its number on this host."""

    def as_json(self) -> Fields:
        """What the peer must know of it; carried out of band to its `connect_qps`."""


class RemoteQp(Protocol):
    """The peer's side of a QP, as its `as_json` told it."""

    @property
    def region_address(self) -> int:
        """Address of the first byte of its region, as `post_write` takes it."""


class EndpointLike(Protocol):
    """One host's endpoint. Times are integer nanoseconds of CLOCK_MONOTONIC, QPs go by their number on this host.

    Errors of its own are `mrc_testbed.hosts.common.errors.CoreError`: the session answers a command with their text.
    """

    def open_qp(self, peer: int, region_bytes: int) -> LocalQp:
        """Register a region of zeros; the result must reach the peer's `connect_qp`."""

    def connect_qp(self, qpn: int, remote: Any) -> None:
        """Take the peer's side, a `RemoteQp` of this transport; data may flow from now on."""

    def reset_qp(self, qpn: int) -> LocalQp:
        """Forget the connection and what was posted. The region stays; both ends have to connect again."""

    def destroy_qp(self, qpn: int) -> None:
        """Forget the QP with its region."""

    def region(self, qpn: int) -> memoryview:
        """The registered region, writable; the peer's data appears here."""

    def post_write(
        self, qpn: int, data: memoryview, remote_address: int, wr_id: int, immediate: int | None = None
    ) -> None:
        """Queue one write. `data` is not copied. Raises QpStateError unless the QP is connected and whole."""

    def port_down(self, plane: int, now_ns: int) -> None:
        """The port of `plane` lost its carrier."""

    def port_up(self, plane: int, now_ns: int) -> None:
        """The port of `plane` has carrier again."""

    def probe_paths(self, peer: int, now_ns: int) -> None:
        """Warm-up: have every path to `peer` answer, or every QP where it is the network that chooses paths."""

    def path_report(self, peer: int) -> PathReport:
        """What has answered so far, and the smallest round trip."""

    def agree_on_base_rtt(self, base_ns: int) -> None:
        """What all hosts take for a round trip without queues."""

    def handle_timeout(self, now_ns: int) -> None:
        """Run what is due."""

    def next_timeout(self) -> int | None:
        """When to call `handle_timeout` or to send next at the latest; None: no need to."""

    def poll_event(self) -> object | None:
        """Next event, oldest first; None when there is none. It is one of hosts/common/events.py, or of the protocol's
        own that hosts/reports.py knows."""

    def counters(self) -> dict[str, int]:
        """All counters so far, flat."""

    def qp_packets(self) -> dict[int, QpPackets]:
        """Data packets of each QP that was ever connected."""

    def lost_packets(self) -> dict[int, int]:
        """Packets taken for lost by each QP that lost any."""

    def take_placed(self, qpn: int, mark_ns: int) -> int:
        """Payload bytes placed in the region of a connected QP since the last call, as far as they arrived before the
        mark that it set; from now on the mark is `mark_ns`."""

    def path_packets(self, peer: int) -> dict[tuple[int, int], int]:
        """Data packets by (plane, uplink); empty where the network chooses paths."""

    def qp_flows(self) -> dict[int, list[QpFlow]]:
        """Of each connected QP, one or one a plane; empty where hosts choose paths, and a QP has many."""

    def stalled(self, now_ns: int) -> dict[int, int]:
        """When the stalls began that go on, by QP number."""


class DatagramEndpoint(EndpointLike, Protocol):
    """An endpoint that makes its own packets (UDP payloads)."""

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
        """Take in one packet of host `peer`; the view is not kept."""

    def poll_transmit(self, now_ns: int, buffer: memoryview) -> tuple[int, Any, int] | None:
        """Write the next packet: (size, where to send it, traffic class), or None."""

    def port_paused(self, plane: int, now_ns: int) -> None:
        """PFC: the port of `plane` may send no data from now on, and takes none."""

    def port_resumed(self, plane: int, now_ns: int) -> None:
        """The pause of `port_paused` is over."""

    @property
    def burst_ns(self) -> int:
        """What a port is given in advance lasts so long: who polls less often than that leaves it idle."""


class SocketEndpoint(EndpointLike, Protocol):
    """An endpoint whose packets the kernel makes."""

    def fileno(self) -> int:
        """Readable when `receive` has something to do."""

    def receive(self, now_ns: int, everything: bool = False) -> bool:
        """Take in what has come; returns whether there may be more. `everything`: also where the kernel would wait for
        more of a payload before it says that there is something."""

    def transmit(self, now_ns: int) -> None:
        """Give the kernel what it takes."""


class PathCounts(Protocol):
    """What is told of the paths of a transport whose hosts have some."""

    def take(self) -> Fields:
        """Fields of a snapshot, of what happened since the last time."""


class PathDenylist(Protocol):
    """The denylist of a transport whose hosts choose paths. Rows as in the commands `deny` and `allow`."""

    def deny(self, rows: Sequence[Any]) -> None:
        """Use these paths no more. Raises CommandError for a row that names none."""

    def allow(self, rows: Sequence[Any], now_ns: int) -> None:
        """Undo `deny`."""
