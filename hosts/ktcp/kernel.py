"""What the kernel's TCP is told, and what it tells: options of sockets, settings of the namespace, TCP_INFO.

The layout of `struct tcp_info` is that of the kernel header linux/tcp.h; fields that an older
kernel does not have yet read as None.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from mrc_testbed.hosts.control import CommandError

USUAL_BUFFER_BYTES = 4 << 20
"""What a connection begins with. The kernel's own 128 KiB kept the first step of a job waiting for the window to grow:
2.2 s instead of 1.4 s at 50 Mb/s and 40 ms."""
LONGEST_BUFFER_BYTES = 32 << 20
DEFAULT_RTO_MIN_NS = 200_000_000
_INFO = Struct("<8B24I4Q6I4Q2I2Q6I2H")
INFO_BYTES = _INFO.size
_U32 = 8
_U64 = _U32 + 24
_SEGS = _U64 + 4
_SENT = _SEGS + 6 + 4 + 2
_RTOS = _SENT + 2 + 6
_WITHOUT_RTOS_BYTES = INFO_BYTES - 4
_SETTINGS = Path("/proc/sys/net/ipv4")


class TcpInfo(NamedTuple):
    """Of one connection so far. Bytes are those of the stream, frame headers included."""

    rtt_ns: int
    """Smallest round trip of late (the kernel keeps it for five minutes), 0 before the first."""
    last_ack_ns: int
    """How long ago the last ACK came, to the grain of the kernel's clock (1 to 10 ms)."""
    retransmitted: int
    """Packets."""
    bytes_acked: int
    bytes_received: int
    bytes_sent: int
    """Retransmissions included."""
    data_received: int
    """Packets with payload."""
    data_sent: int
    timeouts: int | None
    """Retransmission timeouts; kernels before 6.7 do not count them."""


def tcp_info(connection: socket.socket) -> TcpInfo:
    """Ask the kernel. Raises OSError for a socket that is none any more."""
    return parse_info(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES))


def parse_info(raw: bytes) -> TcpInfo:
    """Read a `struct tcp_info`, as long as this kernel has it."""
    fields = _INFO.unpack(raw.ljust(INFO_BYTES, b"\0"))
    min_rtt_us = fields[_SEGS + 3]
    return TcpInfo(
        rtt_ns=0 if min_rtt_us == 0xFFFFFFFF else min_rtt_us * 1000,
        last_ack_ns=fields[_U32 + 12] * 1_000_000,
        retransmitted=fields[_U32 + 23],
        bytes_acked=fields[_U64 + 2],
        bytes_received=fields[_U64 + 3],
        bytes_sent=fields[_SENT],
        data_received=fields[_SEGS + 4],
        data_sent=fields[_SEGS + 5],
        timeouts=fields[_RTOS] if len(raw) > _WITHOUT_RTOS_BYTES else None,
    )


class SocketOptions(NamedTuple):
    """Of every socket. `payload_bytes`: of a full packet, TCP options included. `subflows`: sockets are of MPTCP."""

    congestion_control: str
    payload_bytes: int
    subflows: bool = False


def new_socket(options: SocketOptions) -> socket.socket:
    """Of a kind that can listen or dial. Raises OSError."""
    protocol = socket.IPPROTO_MPTCP if options.subflows else socket.IPPROTO_TCP
    return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)


def tune_socket(connection: socket.socket, options: SocketOptions) -> None:
    """Options of a listening or dialling socket. Raises CommandError for an algorithm that the kernel lacks."""
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, options.payload_bytes)
    try:
        # The sysctl would take only what is in tcp_allowed_congestion_control.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.congestion_control.encode())
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        known = (_SETTINGS / "tcp_available_congestion_control").read_text(encoding="ascii").split()
        raise CommandError(
            f"this kernel has no TCP congestion control {options.congestion_control!r}, only {', '.join(known)}"
        ) from None


def tune_namespace(rto_min_ns: int) -> None:
    """Settings of this network namespace. Raises CommandError for a kernel that cannot have this `rto_min_ns`.

    Nothing is remembered from one connection for the next, and buffers may hold several BDP.
    """
    _write("tcp_no_metrics_save", "1")
    for name in ("tcp_rmem", "tcp_wmem"):
        least, _, _ = (_SETTINGS / name).read_text(encoding="ascii").split()
        _write(name, f"{least} {USUAL_BUFFER_BYTES} {LONGEST_BUFFER_BYTES}")
    if os.path.exists(_SETTINGS / "tcp_rto_min_us"):
        _write("tcp_rto_min_us", str(rto_min_ns // 1000))
    elif rto_min_ns != DEFAULT_RTO_MIN_NS:
        raise CommandError("tcp.rto_min can be set from Linux 6.11 on (tcp_rto_min_us); leave it out: 200ms")


def _write(name: str, value: str) -> None:
    (_SETTINGS / name).write_text(value, encoding="ascii")
