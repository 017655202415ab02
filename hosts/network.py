"""The network of a daemon as `configure` makes it: the endpoint, its sockets, its peers and the paths to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hosts.carrier import Carrier
from hosts.control import CommandError, number_in, text_in
from hosts.core.endpoint import Endpoint
from hosts.udp import PORT, Address, RxSocket, TxSocket, canonical


@dataclass(slots=True)
class Network:
    """What `configure` makes: the endpoint and its sockets.

    `stamped`: packets arrive `delay_ns` after the kernel's time stamp, and wait in a delay line until then; else they
    arrive when they are read.
    """

    endpoint: Endpoint
    rx: RxSocket
    tx: TxSocket
    carrier: Carrier
    delay_ns: int
    stamped: bool
    rtt_ns: int
    quiet: bool = False
    """Nothing is sent any more; what comes in still counts. The end of a run: then all books can be compared."""
    packets_out: int = 0
    """Handed to the sending socket, and it may have refused some (`TxSocket.lost`)."""
    packets_in: int = 0
    """Datagrams from peers that the endpoint was given."""

    def follow_ports(self, now_ns: int) -> None:
        """Tell the endpoint which ports have lost or found their carrier."""
        for plane, up in self.carrier.changes():
            if up:
                self.endpoint.port_up(plane, now_ns)
            else:
                self.endpoint.port_down(plane, now_ns)


@dataclass(slots=True)
class PeerRow:
    """A row of `peers` in `configure`. `paths`: plane, uplink, and where to send for that path."""

    host: int
    name: str
    address: str
    paths: list[tuple[int, int, Address]]

    @classmethod
    def read(cls, row: Any) -> PeerRow:
        """From JSON. Raises CommandError when a field is missing or wrong."""
        name = text_in(row, "name")
        try:
            paths = [(plane, uplink, _destination(plane, uplink, address)) for plane, uplink, address in row["paths"]]
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise CommandError(f"peer {name}: paths must be [[plane, uplink, address], ...]: {error}") from None
        return cls(number_in(row, "host"), name, text_in(row, "address"), paths)


def _destination(plane: int, uplink: int, address: str) -> Address:
    # EV[31:16] travels as the flow label (design, section 3).
    return canonical(address), PORT, plane << 8 | uplink, 0
