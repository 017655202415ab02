"""The seam between an endpoint and what carries its packets: sockets and rtnetlink, or a network in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from mrc_testbed.hosts import batched
from mrc_testbed.hosts.carrier import Carrier
from mrc_testbed.hosts.probe_socket import ProbeSocket
from mrc_testbed.hosts.udp import Datagram, RxSocket, SenderSet, Source, TxSocket


class CarrierWatch(Protocol):
    """The carrier of this host's ports."""

    def changes(self) -> list[tuple[int, bool]]:
        """(plane, carrier) for every change since the last call."""

    def fileno(self) -> int:
        """Readable when there are changes."""


class PacketReceiver(Protocol):
    """Where packets to this host come in."""

    @property
    def unknown_sources(self) -> int:
        """Packets from addresses of no peer."""

    @property
    def unknown_ports(self) -> int:
        """Packets from the address of a peer, but not from its port."""

    @property
    def unread(self) -> bool:
        """The last `receive` gave None though there may be more: strangers sent that much."""

    def receive(self, now_ns: int) -> Datagram | None:
        """The next packet from a peer; None when there is none, or for `unread`."""

    def swap(self, buffer: memoryview) -> memoryview:
        """Let the next packet go into `buffer`; returns the one that was current."""

    def buffer_drops(self) -> int:
        """Packets lost because this host was too slow."""

    def fileno(self) -> int:
        """Readable when there are packets."""


class PacketSender(Protocol):
    """Where packets of this host go out. `lost`: those that it refused, by errno name."""

    lost: Counter[str]

    def send(self, packet: memoryview, destination: Any, traffic_class: int) -> None:
        """Send, or lose and count. `destination`: what the endpoint was given for a path."""


class ProbeCarrier(Protocol):
    """Takes probes of this host to itself along a list of switches. `lost`: those that it refused, by errno name;
    `strangers`: packets that came in and are none of this host's."""

    lost: Counter[str]
    strangers: int

    def send(self, destination: str, payload: bytes) -> bool:
        """Send to a list of uSIDs; False, and counted, if it was refused."""

    def receive(self, now_ns: int) -> tuple[bytes, int] | None:
        """The payload of the next one that is back, and when it arrived; None when there is none."""


class Wiring(Protocol):
    """Makes these for one host. Addresses as in `configure`. Raises OSError for what cannot be made."""

    def delay_arrivals(self, delay_ns: int, stamped: bool) -> None:
        """Before any of them is made: when packets arrive, as `mrc_testbed.hosts.network.DatagramNetwork` says."""

    def port_watch(self, planes: int) -> CarrierWatch:
        """Of ports 0 to `planes` - 1."""

    def receiver(self, hosts: Mapping[Source, int], *_: object) -> PacketReceiver:
        """As mrc_testbed.hosts.udp.RxSocket. `hosts`: host number by where each peer sends from. What endpoints of
        before say of delays besides is the world's, and ignored."""

    def sender(self, address: str, udp_port: int, default_class: int) -> PacketSender:
        """As mrc_testbed.hosts.udp.TxSocket: one source for all packets."""

    def sender_set(self, own: Mapping[str, str], default_class: int) -> PacketSender:
        """As mrc_testbed.hosts.udp.SenderSet: a source port for each QP."""

    def probes(self, address: str, traffic_class: int) -> ProbeCarrier:
        """As mrc_testbed.hosts.probe_socket.ProbeSocket."""


class KernelWiring:
    """Sockets of this network namespace."""

    def __init__(self) -> None:
        self._delay_ns, self._stamped = 0, False

    def delay_arrivals(self, delay_ns: int, stamped: bool) -> None:
        """By the stamps of the sockets that are made from now on."""
        self._delay_ns, self._stamped = delay_ns, stamped

    def port_watch(self, planes: int) -> Carrier:
        """By rtnetlink."""
        return Carrier(planes)

    def receiver(self, hosts: Mapping[Source, int], *_: object) -> RxSocket:
        """One UDP socket."""
        return batched.receiver(hosts, self._delay_ns, self._stamped)

    def sender(self, address: str, udp_port: int, default_class: int) -> TxSocket:
        """One UDP socket."""
        return TxSocket(address, udp_port, default_class)

    def sender_set(self, own: Mapping[str, str], default_class: int) -> SenderSet:
        """A UDP socket a source port."""
        return SenderSet(own, default_class)

    def probes(self, address: str, traffic_class: int) -> ProbeSocket:
        """A raw socket, and a UDP socket for what comes back."""
        return ProbeSocket(address, traffic_class, self._delay_ns)
