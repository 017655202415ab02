"""The network of a daemon as `configure` makes it: the endpoint, its sockets, its peers and the ways to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mrc_testbed.hosts.control import CommandError, Fields, number_in, text_in
from mrc_testbed.hosts.transport import (
    DatagramEndpoint,
    EndpointLike,
    PathCounts,
    PathDenylist,
    RemoteQp,
    SocketEndpoint,
)
from mrc_testbed.hosts.udp import PORT, Address, canonical
from mrc_testbed.hosts.wiring import CarrierWatch, PacketReceiver, PacketSender


@dataclass(slots=True, kw_only=True)
class Network:
    """What all transports have. `peers`: host number to name."""

    endpoint: EndpointLike
    peers: dict[int, str]
    carrier: CarrierWatch
    rtt_ns: int
    read_remote: Callable[[Fields], RemoteQp]
    """The peer's side of a QP from JSON. Raises KeyError, IndexError, TypeError or PeerAttributeError."""
    denylist: PathDenylist | None = None
    """None: the hosts choose no paths."""
    path_log: PathCounts | None = None
    """None: they have none that they could tell of."""
    speed: int = 1
    """How many times faster than written all is: what people set in seconds is divided by it."""
    swift: int = 1
    """How many times faster than daemons hosts are: least times that only their software needs are divided by it."""
    quiet: bool = False
    """Nothing is sent any more; what comes in still counts. The end of a run: then all books can be compared."""
    disabled: set[int] = field(default_factory=set)
    """Planes whose port a controller has taken out of use."""
    without_carrier: set[int] = field(default_factory=set)
    """Planes whose port has none."""

    def follow_ports(self, now_ns: int) -> None:
        """Tell the endpoint which ports have lost or found their carrier."""
        for plane, up in self.carrier.changes():
            if up:
                self.without_carrier.discard(plane)
            else:
                self.without_carrier.add(plane)
            if plane not in self.disabled:
                self._step_port(plane, up, now_ns)

    def switch_port(self, plane: int, enabled: bool, now_ns: int) -> None:
        """A controller takes a port out of use, whatever its carrier, or gives it back."""
        if enabled == (plane not in self.disabled):
            return
        if enabled:
            self.disabled.discard(plane)
        else:
            self.disabled.add(plane)
        if plane not in self.without_carrier:
            self._step_port(plane, enabled, now_ns)

    def _step_port(self, plane: int, up: bool, now_ns: int) -> None:
        if up:
            self.endpoint.port_up(plane, now_ns)
        else:
            self.endpoint.port_down(plane, now_ns)

    @property
    def packets_handled(self) -> int:
        """Packets that the host itself sent and took in; 0 where its kernel does."""
        return 0

    def counters(self) -> dict[str, int]:
        """Those of the endpoint and of its sockets, flat; a table that is the caller's own."""
        return self.endpoint.counters()


@dataclass(slots=True, kw_only=True)
class DatagramNetwork(Network):
    """Of an endpoint that makes its own packets, and their sockets."""

    endpoint: DatagramEndpoint
    rx: PacketReceiver
    tx: PacketSender
    delay_ns: int = 0
    stamped: bool = False
    """Packets arrive `delay_ns` after the kernel's time stamp, and wait in a delay line until then; else they arrive
    when they are read. The world sets both (`mrc_testbed.hosts.configure`), as `speed` and `swift`."""
    packets_out: int = 0
    """Handed to the sending sockets, and they may have refused some (`lost`)."""
    packets_in: int = 0
    """Datagrams from peers that the endpoint was given."""
    packets_late: int = 0
    """Of these, those that it was given `mrc_testbed.hosts.loops.LATE_RTTS` or more after they had arrived."""

    @property
    def packets_handled(self) -> int:
        """As of any network."""
        return self.packets_in + self.packets_out

    def counters(self) -> dict[str, int]:
        """Those of the endpoint and of its sockets, flat."""
        counted = self.endpoint.counters()
        for name, count in self.tx.lost.items():
            counted[f"send_lost_{name}"] = count
        counted["packets_out"] = self.packets_out
        counted["packets_in"] = self.packets_in
        counted["packets_late"] = self.packets_late
        counted["unknown_source"] = self.rx.unknown_sources
        counted["unknown_port"] = self.rx.unknown_ports
        counted["receive_buffer_drops"] = self.rx.buffer_drops()
        return counted


@dataclass(slots=True, kw_only=True)
class SocketNetwork(Network):
    """Of an endpoint whose packets the kernel makes: its sockets are the endpoint's own."""

    endpoint: SocketEndpoint


_UPLINKS = 256
"""A uSID has eight bits for the uplink."""


@dataclass(slots=True)
class PeerRow:
    """A row of `peers` in `configure`, where hosts choose paths. `address`, `udp_port`: where its packets come from.
    `paths`: plane, uplink, and where to send for it."""

    host: int
    name: str
    address: str
    udp_port: int
    paths: list[tuple[int, int, Address]]

    @classmethod
    def read(cls, row: Any, planes: int) -> PeerRow:
        """From JSON. Raises CommandError when a field is missing or wrong."""
        name = text_in(row, "name")
        try:
            paths = [(plane, uplink, _destination(plane, uplink, address)) for plane, uplink, address in row["paths"]]
            if not paths or any(
                plane not in range(planes) or uplink not in range(_UPLINKS) for plane, uplink, _ in paths
            ):
                raise ValueError(f"there must be one at least, on planes below {planes}, uplinks below {_UPLINKS}")
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise CommandError(f"peer {name}: paths must be [[plane, uplink, address], ...]: {error}") from None
        return cls(number_in(row, "host"), name, text_in(row, "address"), number_in(row, "udp_port", 1), paths)


def _destination(plane: int, uplink: int, address: str) -> Address:
    # EV[31:16] travels as the flow label (docs/protocol.md, "Paths").
    return canonical(address), PORT, plane << 8 | uplink, 0


Ports = dict[int, str]
"""The plain address of a host's port on each plane."""


@dataclass(slots=True)
class PeerPorts:
    """A row of `peers` in `configure`, where the network chooses paths."""

    host: int
    name: str
    ports: Ports

    @classmethod
    def read(cls, row: Any) -> PeerPorts:
        """From JSON. Raises CommandError when a field is missing or wrong."""
        name = text_in(row, "name")
        return cls(number_in(row, "host"), name, read_ports(row.get("ports"), f"peer {name}: "))


def read_ports(rows: Any, whose: str = "") -> Ports:
    """`[[plane, address], ...]`, at least one. Raises CommandError."""
    try:
        ports = {int(plane): canonical(address) for plane, address in rows}
    except (TypeError, ValueError, OSError) as error:
        raise CommandError(f"{whose}ports must be [[plane, address], ...]: {error}") from None
    if not ports:
        raise CommandError(f"{whose}ports must have at least one [plane, address]")
    return ports
