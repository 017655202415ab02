"""The two UDP sockets of a host and its timer.

Packets come in on one socket, bound to port 4791 on every address of the host, and go out of another, bound to the
host's plain address and to the port that is EV[15:0]; one socket for both would tie that port to 4791. The kernel's
routes put a packet on its path, by its destination address.

Option and ancillary numbers are those of the kernel headers (linux/in6.h, linux/udp.h, asm-generic/socket.h), because
the `socket` module of Python 3.11 lacks them. Each packet is a call of its own here; hosts/batched.py has one for many.
No GSO: sixteen packets would share one path and one fate.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from mrc_testbed.hosts import batches
from mrc_testbed.hosts.socket_buffers import enlarge_receive_buffer, enlarge_send_buffer
from mrc_testbed.hosts.stamps import ArrivalClock

PORT = 4791
"""UDP destination port of RoCEv2, which MRC keeps (docs/protocol.md, "On the wire")."""
MAX_DATAGRAM_BYTES = 9216
"""Longer than any packet of a fabric with MTU 9000."""

Address = tuple[str, int, int, int]
"""An IPv6 socket address: address, port, flow label, scope."""

_IPV6_FLOWINFO = 11
FLOWINFO_SEND = 33
AUTOFLOWLABEL = 70
_UDP_NO_CHECK6_TX = 101
UDP_NO_CHECK6_RX = 102
_SO_MEMINFO = 55
SO_TIMESTAMPNS_NEW = 64
_MEMINFO = struct.Struct("9I")
_MEMINFO_DROPS = 8
TIMESPEC = struct.Struct("qq")
_WORD = struct.Struct(">I")
RECEIVE_BUFFER_BYTES = 16 << 20
MOST_STRANGERS = 64
"""Packets of strangers that are read in one call: timers must not wait until a flood is over."""
_SEND_BUFFER_BYTES = 4 << 20
_SECOND_NS = 1_000_000_000
_TFD_TIMER_ABSTIME = 1

LOST_ERRNOS = frozenset(
    {
        errno.ENOBUFS,
        errno.EAGAIN,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.EINVAL,  # what the kernel says of a `blackhole` route
        errno.EACCES,  # and of a `prohibit` route
    }
)
"""What a broken or full path looks like to its own sender: such a packet is lost, as it would be further on."""


def canonical(address: str) -> str:
    """An IPv6 address as `socket` spells it. Raises OSError for anything else."""
    return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, address))


Source = tuple[str] | tuple[str, int]
"""Where packets of a peer come from: its address, and its port where all that it sends comes from one."""
Datagram = tuple[memoryview, int, int, int, int, int]
"""A received packet: payload, host number of the sender, flow label, source port, traffic class, time of arrival in ns
of CLOCK_MONOTONIC. The payload lies in the buffer that was current. A named tuple takes 0.3 us longer."""
ARRIVAL: Final = 5
"""Index of the time of arrival."""


class RxSocket:
    """The socket that all packets to this host come in by.

    `hosts` maps where every peer sends from to its host number; packets from elsewhere are dropped and counted, those
    with the address of a peer and another port as `unknown_ports`.
    A packet's time of arrival is when it was read here; `stamped`, it is `delay_ns` after the kernel's time stamp,
    which may be yet to come (see hosts/delay.py).
    """

    def __init__(self, hosts: Mapping[Source, int], delay_ns: int, stamped: bool) -> None:
        self.unknown_sources = 0
        self.unknown_ports = 0
        self.unread = False
        """The last `receive` stopped before the socket was empty."""
        self._buffers = [memoryview(bytearray(MAX_DATAGRAM_BYTES))]
        self._ancillary_bytes = socket.CMSG_SPACE(_WORD.size) + socket.CMSG_SPACE(TIMESPEC.size)
        # Source addresses come out of recvmsg in the canonical spelling.
        self._hosts = {(canonical(source[0]), *source[1:]): host for source, host in hosts.items()}
        self._addresses = {source[0] for source in self._hosts}
        self._told_apart_by = slice(max(map(len, hosts), default=1))
        self._clock = ArrivalClock(delay_ns)
        self._socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        enlarge_receive_buffer(self._socket, RECEIVE_BUFFER_BYTES)
        self._socket.setsockopt(socket.IPPROTO_IPV6, _IPV6_FLOWINFO, 1)
        self._socket.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, int(stamped))
        self._socket.bind(("::", PORT))

    def fileno(self) -> int:
        """For epoll."""
        return self._socket.fileno()

    def swap(self, buffer: memoryview) -> memoryview:
        """Let the next packet go into `buffer`, of at least MAX_DATAGRAM_BYTES. Returns the one that was current."""
        before, self._buffers[0] = self._buffers[0], buffer
        return before

    def receive(self, now_ns: int) -> Datagram | None:
        """The next packet from a peer; None when there is none, or after MOST_STRANGERS of others, to keep time."""
        for _ in range(MOST_STRANGERS):
            try:
                size, ancillary, _, source = self._socket.recvmsg_into(self._buffers, self._ancillary_bytes)
            except BlockingIOError:
                self.unread = False
                return None
            peer = self._hosts.get(source[self._told_apart_by])
            if peer is None:
                self._refuse(source[0])
                continue
            # The kernel leaves out a flow information word of 0.
            word, arrival_ns = 0, now_ns
            for _, kind, data in ancillary:
                if kind == _IPV6_FLOWINFO:
                    word = _WORD.unpack(data)[0]
                elif kind == SO_TIMESTAMPNS_NEW:
                    seconds, nanoseconds = TIMESPEC.unpack(data)
                    arrival_ns = self._clock.due_ns(seconds * _SECOND_NS + nanoseconds, now_ns)
            return self._buffers[0][:size], peer, word & 0xFFFFF, source[1], word >> 20 & 0xFF, arrival_ns
        self.unread = True
        return None

    def _refuse(self, address: str) -> None:
        if address in self._addresses:
            self.unknown_ports += 1
        else:
            self.unknown_sources += 1

    def buffer_drops(self) -> int:
        """Packets the kernel dropped because this socket's buffer was full: the endpoint was too slow."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        drops: int = _MEMINFO.unpack(raw)[_MEMINFO_DROPS]
        return drops


class TxSocket:
    """The socket that all packets of this host go out of, from its plain `address` and `udp_port`.

    `default_class` is the traffic class that most packets have: others cost ancillary data. `lost`: by errno name.
    """

    def __init__(self, address: str, udp_port: int, default_class: int) -> None:
        self.lost: Counter[str] = Counter()
        self.default_class = default_class
        self._ancillary = [
            [(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, struct.pack("i", traffic_class))] for traffic_class in range(256)
        ]
        self._socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        enlarge_send_buffer(self._socket, _SEND_BUFFER_BYTES)
        self._socket.setsockopt(socket.IPPROTO_IPV6, FLOWINFO_SEND, 1)
        # Else the kernel replaces flow label 0, that of plane 0 and uplink 0, by a hash. The receiver then saw a path
        # that does not exist, and its answers were lost.
        self._socket.setsockopt(socket.IPPROTO_IPV6, AUTOFLOWLABEL, 0)
        self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, default_class)
        self._socket.setsockopt(socket.IPPROTO_UDP, _UDP_NO_CHECK6_TX, 1)
        self._socket.bind((address, udp_port))

    def fileno(self) -> int:
        """For `sendmmsg`."""
        return self._socket.fileno()

    def send(self, packet: memoryview, destination: Address, traffic_class: int) -> None:
        """Send, or lose and count by errno name in `lost`. Raises OSError for what no broken path explains."""
        try:
            if traffic_class == self.default_class:
                self._socket.sendto(packet, destination)
            else:
                self._socket.sendmsg((packet,), self._ancillary[traffic_class], 0, destination)
        except OSError as error:
            if error.errno not in LOST_ERRNOS:
                raise
            self.lost[errno.errorcode[error.errno]] += 1


Way = tuple[int, Address]
"""UDP source port and where to send."""


class SenderSet:
    """A socket for each source port in use, where it is the source port that decides the path of a packet.

    `own`: by address of a peer's port, the address of this host's port on the same plane.
    """

    def __init__(self, own: Mapping[str, str], default_class: int) -> None:
        import resource  # here, because Windows loads this file, too, and has none

        self.lost: Counter[str] = Counter()
        self._own = own
        self._default_class = default_class
        self._bound: dict[tuple[str, int], TxSocket] = {}
        self._by_way: dict[Way, TxSocket] = {}
        # Each QP has a source port of its own, and 64 QPs to each of some peers are more than the usual 1,024.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def send(self, packet: memoryview, way: Way, traffic_class: int) -> None:
        """As `TxSocket.send`, from the source port of `way`."""
        self.source(way).send(packet, way[1], traffic_class)

    def source(self, way: Way) -> TxSocket:
        """The socket with the source port of `way`, made when it is first asked for."""
        sender = self._by_way.get(way)
        if sender is None:
            sender = self._by_way[way] = self._bind(way)
        return sender

    def _bind(self, way: Way) -> TxSocket:
        port, (destination, *_) = way
        where = self._own[destination], port
        if where not in self._bound:
            self._bound[where] = TxSocket(*where, self._default_class)
            self._bound[where].lost = self.lost
        return self._bound[where]


_FRACTION_BITS = 3


class Lateness:
    """How late timer wake-ups were, as a histogram with eight bins to each power of two: bounds are 12 % apart."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self._counts = [0] * (64 << _FRACTION_BITS)
        self._wakeups = self._most_ns = 0

    def add(self, late_ns: int) -> None:
        """Count one wake-up."""
        shift = max(late_ns.bit_length() - 1 - _FRACTION_BITS, 0)
        self._counts[(shift << _FRACTION_BITS) + (late_ns >> shift)] += 1
        self._wakeups += 1
        if late_ns > self._most_ns:
            self._most_ns = late_ns

    def summary(self) -> dict[str, int]:
        """Number of wake-ups, median and 99th percentile (upper bounds of their bins) and exact maximum."""
        return {
            "wakeups": self._wakeups,
            "p50_ns": self._percentile(50),
            "p99_ns": self._percentile(99),
            "max_ns": self._most_ns,
        }

    def _percentile(self, percent: int) -> int:
        left = -(-self._wakeups * percent // 100)
        for position, count in enumerate(self._counts):
            left -= count
            if count and left <= 0:
                return min(_upper_bound(position), self._most_ns)
        return 0


def _upper_bound(position: int) -> int:
    """The smallest number of nanoseconds that falls into a later bin of Lateness."""
    shift = max((position >> _FRACTION_BITS) - 1, 0)
    return (position - (shift << _FRACTION_BITS) + 1) << shift


class Timer:
    """A timerfd on CLOCK_MONOTONIC: epoll's own timeouts are 1 ms coarse, and `os.timerfd_create` is 3.13 and later.

    It is never read: arming it again clears it. `lateness` has what `fired` was told.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._fd = self._libc.timerfd_create(time.CLOCK_MONOTONIC, flags)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self.lateness = Lateness()
        self._armed_ns = 0
        extension, _ = batches.found()
        self._arm: Callable[[int, int], None] = self._settime if extension is None else extension.arm

    def fileno(self) -> int:
        """For epoll."""
        return int(self._fd)

    def arm(self, at_ns: int) -> None:
        """Fire at this time, at once if it is past."""
        if at_ns == self._armed_ns:
            return
        self._armed_ns = at_ns
        self._arm(self._fd, at_ns)

    def _settime(self, fd: int, at_ns: int) -> None:
        spec = (ctypes.c_long * 4)(0, 0, *divmod(at_ns, _SECOND_NS))  # struct itimerspec: interval, value (s, ns)
        if self._libc.timerfd_settime(fd, _TFD_TIMER_ABSTIME, spec, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def fired(self, now_ns: int) -> None:
        """The descriptor was ready at `now_ns`: it stays so until the timer is armed again."""
        self.lateness.add(now_ns - self._armed_ns)
        self._armed_ns = 0
