"""What the kernel tells of an MPTCP connection and of its subflows, one in each plane that both hosts have.

The layouts are those of the kernel header linux/mptcp.h. Python's own `getsockopt` returns 1024 bytes at most, which is
less than eight subflows need.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from functools import cache
from struct import Struct

from mrc_testbed.hosts.ktcp.kernel import INFO_BYTES, TcpInfo, parse_info

_SOL_MPTCP = 284
_MPTCP_INFO, _MPTCP_TCPINFO, _MPTCP_SUBFLOW_ADDRS = 1, 2, 3
_INFO = Struct("<6B2x2I3Q3BxI4Q")
_RECEIVED, _ACKED = -2, -1
_HEAD = Struct("<4I")
"""Its own size, subflows, size of a row in the kernel, size of a row here."""
_PLACES_BYTES = 256
_PLACE = Struct(">2xH4x16s")
"""A sockaddr_in6: port and address. Two in a row, of 128 bytes each: the own end and the peer's."""
_PEER_AT = 128
_MOST = 16
"""Rows that there is room for: twice what Linux takes up."""
Ends = tuple[str, int, int]
"""Own address, own port, the peer's port."""


class Subflows:
    """Figures of one connection. What a subflow that has ended sent still counts."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._last: dict[Ends, TcpInfo] = {}

    def ends(self) -> list[Ends]:
        """Of the subflows that there are. Raises OSError."""
        return [
            (socket.inet_ntop(socket.AF_INET6, own), own_port, peer_port)
            for own_port, own, peer_port, _ in map(_parse_places, self._rows(_MPTCP_SUBFLOW_ADDRS, _PLACES_BYTES))
        ]

    def info(self) -> TcpInfo:
        """Packets and bytes that subflows sent, and bytes of the whole stream that were received and acknowledged: what
        came twice counts once. Raises OSError."""
        there = dict(zip(self.ends(), map(parse_info, self._rows(_MPTCP_TCPINFO, INFO_BYTES)), strict=False))
        self._last.update(there)
        whole = _INFO.unpack(self._socket.getsockopt(_SOL_MPTCP, _MPTCP_INFO, _INFO.size))
        # For one that has ended, time since its last ACK does not go on.
        last_ack_ns = min((info.last_ack_ns for info in there.values()), default=0)
        return _summed(list(self._last.values()), last_ack_ns, whole[_RECEIVED], whole[_ACKED])

    def _rows(self, option: int, size: int) -> Iterator[bytes]:
        asked = _HEAD.pack(_HEAD.size, 0, 0, size)
        buffer = ctypes.create_string_buffer(asked, _HEAD.size + _MOST * size)
        length = ctypes.c_uint32(len(buffer))
        if _libc().getsockopt(self._socket.fileno(), _SOL_MPTCP, option, buffer, ctypes.byref(length)):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        for at in range(_HEAD.size, min(length.value, _HEAD.size + _HEAD.unpack_from(buffer)[1] * size), size):
            yield buffer.raw[at : at + size]


@cache
def _libc() -> ctypes.CDLL:
    """Not at import, which other systems do too."""
    return ctypes.CDLL(None, use_errno=True)


def _parse_places(row: bytes) -> tuple[int, bytes, int, bytes]:
    return *_PLACE.unpack_from(row), *_PLACE.unpack_from(row, _PEER_AT)


def _summed(infos: list[TcpInfo], last_ack_ns: int, received: int, acked: int) -> TcpInfo:
    timeouts = [info.timeouts for info in infos if info.timeouts is not None]
    return TcpInfo(
        rtt_ns=min((info.rtt_ns for info in infos if info.rtt_ns), default=0),
        last_ack_ns=last_ack_ns,
        retransmitted=sum(info.retransmitted for info in infos),
        bytes_acked=acked,
        bytes_received=received,
        bytes_sent=sum(info.bytes_sent for info in infos),
        data_received=sum(info.data_received for info in infos),
        data_sent=sum(info.data_sent for info in infos),
        timeouts=sum(timeouts) if len(timeouts) == len(infos) else None,
    )
