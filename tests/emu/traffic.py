"""Senders and receivers of MRC-like packets with plain sockets, for tests that look at what a switch port does."""

from __future__ import annotations

import socket
import struct
import threading
import time
from dataclasses import dataclass

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of
from tests.port_cases import PAYLOAD, mrc_packet

PORT = 4791
FRAME_HEADER_BYTES = 14 + 40 + 40 + 8
DATA_BYTES = wire.DATA_HEADER_BYTES + PAYLOAD + bth.ICRC_BYTES
FRAME_BYTES = FRAME_HEADER_BYTES + DATA_BYTES
_NO_CHECK_TX, _NO_CHECK_RX, _FLOWINFO, _FLOWINFO_SEND, _AUTOFLOWLABEL = 101, 102, 11, 33, 70
_TIMESTAMPNS, _RCVBUFFORCE = 35, 33
_SNDBUF_BYTES = 32 << 10


@dataclass(frozen=True)
class Got:
    """A datagram as the receiver's socket gave it."""

    data: bytes
    traffic_class: int
    at_ns: int
    """Kernel time of arrival, CLOCK_REALTIME."""

    @property
    def dscp(self) -> int:
        return self.traffic_class >> 2

    @property
    def ecn(self) -> int:
        return self.traffic_class & 3

    @property
    def number(self) -> int:
        """The PSN it was sent with."""
        return int.from_bytes(self.data[9:12], "big")


class Source:
    """Sends from a host to one path of another. Its NIC's queue is short: a blocking send runs at line rate."""

    def __init__(
        self,
        fabric: Fabric,
        host: str,
        destination: str,
        path: int = 0,
        tclass: int = wire.CLASS_TRIMMABLE,
        port: int | None = None,
    ) -> None:
        hosts = fabric.plan.host_by_name
        way = fabric.plan.paths(hosts[host], hosts[destination])[path]
        with network_of(fabric.pids[host], host):
            self.socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SNDBUF_BYTES)
        self.socket.setsockopt(socket.IPPROTO_UDP, _NO_CHECK_TX, 1)
        self.socket.setsockopt(socket.IPPROTO_IPV6, _FLOWINFO_SEND, 1)
        self.socket.setsockopt(socket.IPPROTO_IPV6, _AUTOFLOWLABEL, 0)
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tclass)
        self.socket.bind((hosts[host].address, port or hosts[host].udp_port))
        self.address = (way.inner, PORT, way.id.flow_label, 0)
        self.sent = 0
        self._thread: threading.Thread | None = None
        self._stop = False

    def send(self, data: bytes) -> None:
        """One datagram."""
        self.socket.sendto(data, self.address)
        self.sent += 1

    def flood(self, data: bytes) -> None:
        """Send at line rate until `stop`."""

        def run() -> None:
            while not self._stop:
                self.send(data)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def stop(self) -> None:
        """End the flood."""
        self._stop = True
        if self._thread:
            self._thread.join()


class Sink:
    """A UDP socket of a host that accepts packets without a checksum, as the endpoint's does."""

    def __init__(self, fabric: Fabric, host: str) -> None:
        with network_of(fabric.pids[host], host):
            self.socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, 64 << 20)
        self.socket.setsockopt(socket.IPPROTO_UDP, _NO_CHECK_RX, 1)
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        self.socket.bind(("::", PORT))

    def take(self, quiet_s: float = 0.5) -> list[Got]:
        """Everything that arrives until nothing has for `quiet_s`."""
        self.socket.settimeout(quiet_s)
        got = []
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(9216, 256)
            except TimeoutError:
                return got
            found = {kind: value for _, kind, value in ancillary}
            seconds, nanoseconds = struct.unpack("qq", found[_TIMESTAMPNS])
            tclass = struct.unpack("i", found[socket.IPV6_TCLASS])[0]
            got.append(Got(data, tclass, seconds * 10**9 + nanoseconds))


def flood_for(seconds: float, *sources: Source) -> None:
    """All sources at line rate for a while."""
    for source in sources:
        source.flood(mrc_packet(1))
    time.sleep(seconds)
    for source in sources:
        source.stop()
