"""Sends probes of a host to itself: up to a switch that the address names, and back. Two sockets.

A probe leaves as any packet over SRv6 does, IPv6 in IPv6, but here the outer address comes from the caller and not from
a route: it lists the switches there and back, and this host. So the outer header is the kernel's, by a raw socket, and
the inner one is made here. What comes back is unpacked by the kernel's End.DT6, as all packets are, and lies in a UDP
socket of its own port.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections import Counter

from mrc_testbed.hosts.self_probes import PROBE, PROBE_LABEL, PROBE_PORT
from mrc_testbed.hosts.stamps import ArrivalClock
from mrc_testbed.hosts.udp import (
    AUTOFLOWLABEL,
    FLOWINFO_SEND,
    LOST_ERRNOS,
    SO_TIMESTAMPNS_NEW,
    TIMESPEC,
    UDP_NO_CHECK6_RX,
)

_IPV6_IN_IPV6 = 41
_INNER = struct.Struct(">IHBB16s16s")
_UDP = struct.Struct(">HHHH")
_UDP_NUMBER = 17
_VERSION = 6 << 28
_HOPS = 64
_SECOND_NS = 1_000_000_000


class ProbeSocket:
    """`address`: the plain address of this host; `delay_ns`: packets count as arrived so long after the kernel had
    them. Raises OSError without the right to raw sockets. `lost`: probes that the kernel refused, by errno name;
    `strangers`: packets to the port that did not come from this host."""

    def __init__(self, address: str, traffic_class: int, delay_ns: int) -> None:
        self.lost: Counter[str] = Counter()
        self.strangers = 0
        self._address = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, address))
        self._clock = ArrivalClock(delay_ns)
        self._ancillary_bytes = socket.CMSG_SPACE(TIMESPEC.size)
        own = socket.inet_pton(socket.AF_INET6, address)
        size = _UDP.size + PROBE.size
        first = _VERSION | traffic_class << 20 | PROBE_LABEL
        self._headers = _INNER.pack(first, size, _UDP_NUMBER, _HOPS, own, own)
        self._headers += _UDP.pack(PROBE_PORT, PROBE_PORT, size, 0)
        self._raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _IPV6_IN_IPV6)
        self._raw.setsockopt(socket.IPPROTO_IPV6, FLOWINFO_SEND, 1)
        self._raw.setsockopt(socket.IPPROTO_IPV6, AUTOFLOWLABEL, 0)
        self._raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)
        self._raw.bind((address, 0))
        self._back = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._back.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
        self._back.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1)
        self._back.bind((address, PROBE_PORT))

    def send(self, destination: str, payload: bytes) -> bool:
        """Send to a list of uSIDs; False if the kernel refused it, as on a port that is down. Raises OSError for what
        no broken path explains."""
        try:
            self._raw.sendto(self._headers + payload, (destination, 0, PROBE_LABEL, 0))
        except OSError as error:
            if error.errno not in LOST_ERRNOS:
                raise
            self.lost[errno.errorcode[error.errno]] += 1
            return False
        return True

    def receive(self, now_ns: int) -> tuple[bytes, int] | None:
        """The payload of the next probe that is back, and when it arrived; None when there is none."""
        while True:
            try:
                payload, ancillary, _, source = self._back.recvmsg(PROBE.size + 1, self._ancillary_bytes)
            except BlockingIOError:
                return None
            if source[:2] != (self._address, PROBE_PORT):
                self.strangers += 1
                continue
            arrival_ns = now_ns
            for _, kind, data in ancillary:
                if kind == SO_TIMESTAMPNS_NEW:
                    seconds, nanoseconds = TIMESPEC.unpack(data)
                    arrival_ns = self._clock.due_ns(seconds * _SECOND_NS + nanoseconds, now_ns)
            return payload, arrival_ns
