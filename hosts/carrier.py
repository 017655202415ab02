"""Carrier of the NIC ports, from the kernel over rtnetlink (`man 7 rtnetlink`).

The ports of a host are the interfaces `port0`, `port1`, ...; the number is the plane. A socket in the group RTMGRP_LINK
hears of every change; at the start, and again when the kernel says that it had to drop messages, all links are asked
for. Numbers are those of linux/rtnetlink.h and linux/if.h.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator

_RTMGRP_LINK = 1
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK = 16, 17, 18
_NLM_F_REQUEST, _NLM_F_DUMP = 1, 0x300
_IFLA_IFNAME = 3
_IFF_LOWER_UP = 1 << 16
_HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
_LINK = struct.Struct("=BxHiII")
"""ifinfomsg: family, type, index, flags, change mask."""
_ATTRIBUTE = struct.Struct("=HH")
_RECEIVE_BYTES = 1 << 16
_PREFIX = "port"


class Carrier:
    """Watches the ports of this network namespace. `planes`: ports `port0` to `port<planes - 1>` are meant."""

    def __init__(self, planes: int) -> None:
        self._planes = planes
        self._up: dict[int, bool] = {}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))
        self._ask()

    def fileno(self) -> int:
        """For epoll."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _ask(self) -> None:
        """Ask for all links; the answers come as changes do."""
        body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        header = _HEADER.pack(_HEADER.size + len(body), _RTM_GETLINK, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0)
        self._socket.send(header + body)

    def changes(self) -> list[tuple[int, bool]]:
        """(plane, carrier) for every change since the last call. A port not heard of yet counts as having carrier."""
        found = []
        while (data := self._receive()) is not None:
            for plane, up in _ports(data, self._planes):
                if self._up.get(plane, True) is not up:
                    found.append((plane, up))
                self._up[plane] = up
        return found

    def _receive(self) -> bytes | None:
        while True:
            try:
                return self._socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._ask()


def _ports(data: bytes, planes: int) -> Iterator[tuple[int, bool]]:
    """(plane, carrier) of the link messages in one datagram that are about ports."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or kind in (_NLMSG_DONE, _NLMSG_ERROR):
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK):
            flags = _LINK.unpack_from(data, at + _HEADER.size)[3]
            name = _name(data[at + _HEADER.size + _LINK.size : at + length])
            plane = _plane(name)
            if plane is not None and plane < planes:
                yield plane, kind == _RTM_NEWLINK and bool(flags & _IFF_LOWER_UP)
        at += length + 3 & ~3


def _name(attributes: bytes) -> str:
    at = 0
    while at + _ATTRIBUTE.size <= len(attributes):
        length, kind = _ATTRIBUTE.unpack_from(attributes, at)
        if length < _ATTRIBUTE.size:
            break
        if kind == _IFLA_IFNAME:
            return attributes[at + _ATTRIBUTE.size : at + length].rstrip(b"\0").decode(errors="replace")
        at += length + 3 & ~3
    return ""


def _plane(name: str) -> int | None:
    number = name.removeprefix(_PREFIX)
    return int(number) if name.startswith(_PREFIX) and number.isascii() and number.isdigit() else None
