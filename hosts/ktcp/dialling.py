"""How the two ends of a connection come together: who dials, from which port, and who is let in."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from mrc_testbed.hosts.common.ecmp import hash_of_ports, next_hop
from mrc_testbed.hosts.ktcp.frames import HEADER_BYTES, FrameHeader, FrameRefused, TcpFrameKind, parse_frame
from mrc_testbed.hosts.ktcp.kernel import SocketOptions, new_socket, tune_socket
from mrc_testbed.hosts.udp import LOST_ERRNOS

LISTEN_PORT = 4791
"""Where every host listens: the port of RoCEv2 and MRC, so that a capture has all transports under one number."""
_FIRST_SOURCE_PORT = 0xC000
_SOURCE_PORTS = 0x4000
RETRY_NS = 100_000_000
"""Pause after an attempt that the kernel refused at once, or a peer that does not listen yet."""
_PASSING = LOST_ERRNOS | {errno.ECONNREFUSED, errno.EADDRNOTAVAIL}
"""A broken path explains them, or a peer that is not there yet."""


@dataclass(frozen=True, slots=True)
class Way:
    """Both addresses of a connection, and the source port that is tried first."""

    source: str
    destination: str
    source_port: int


def way_of(
    seed: int,
    hosts: tuple[int, int],
    ordinal: int,
    own: Mapping[int, str],
    theirs: Mapping[int, str],
    hash_seed: int | None = None,
) -> Way:
    """The way of the connection `ordinal` from `hosts[0]` to `hosts[1]`: the planes take turns, unless `hash_seed` says
    with what it is hashed to one of them.

    `own`, `theirs`: address by plane. Raises ValueError where they share no plane.
    """
    planes = sorted(own.keys() & theirs.keys())
    if not planes:
        raise ValueError(f"hosts {hosts[0]} and {hosts[1]} share no plane")
    source_port = _FIRST_SOURCE_PORT + crc32(f"{seed} {hosts[0]} {hosts[1]} {ordinal}".encode()) % _SOURCE_PORTS
    turn = ordinal % len(planes)
    if hash_seed is not None:
        turn = next_hop(hash_of_ports(socket.IPPROTO_TCP, (source_port, LISTEN_PORT), hash_seed), len(planes))
    return Way(own[planes[turn]], theirs[planes[turn]], source_port)


def passing(code: int) -> bool:
    """May an attempt that failed like this succeed later?"""
    return code in _PASSING


def dial(way: Way, options: SocketOptions) -> socket.socket:
    """A socket that is connecting; writable when it has, or has failed. Raises OSError, CommandError."""
    dialling = new_socket(options)
    try:
        tune_socket(dialling, options)
        _bind(dialling, way)
        code = dialling.connect_ex((way.destination, LISTEN_PORT))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, "connect")
    except BaseException:
        dialling.close()
        raise
    return dialling


def _bind(dialling: socket.socket, way: Way) -> None:
    """To the drawn port, or the next one that is free."""
    for step in range(_SOURCE_PORTS):
        port = _FIRST_SOURCE_PORT + (way.source_port - _FIRST_SOURCE_PORT + step) % _SOURCE_PORTS
        try:
            dialling.bind((way.source, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return
    raise OSError(errno.EADDRINUSE, "no source port is free")


class Listener:
    """The listening socket, and connections that have not said hello yet."""

    def __init__(self, options: SocketOptions) -> None:
        self._socket = new_socket(options)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tune_socket(self._socket, options)
            self._socket.bind(("::", LISTEN_PORT))
            self._socket.listen(socket.SOMAXCONN)
        except BaseException:
            self._socket.close()
            raise
        self._silent: dict[int, socket.socket] = {}
        self._epoll = select.epoll()
        self._epoll.register(self._socket, select.EPOLLIN)

    def fileno(self) -> int:
        """For epoll: ready when somebody comes or says hello."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Let nobody in any more."""
        for silent in self._silent.values():
            silent.close()
        self._epoll.close()
        self._socket.close()

    def arrivals(self) -> list[tuple[socket.socket, FrameHeader | None]]:
        """Connections that have said hello since; None with one that said something else, or nothing."""
        found = []
        for fd, _ in self._epoll.poll(0):
            silent = self._silent.pop(fd, None)
            if silent is None:
                self._let_in()
            else:
                self._epoll.unregister(fd)
                found.append((silent, _hello(silent)))
        return found

    def _let_in(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, HEADER_BYTES)
        self._silent[accepted.fileno()] = accepted
        self._epoll.register(accepted, select.EPOLLIN)


def _hello(accepted: socket.socket) -> FrameHeader | None:
    try:
        data = accepted.recv(HEADER_BYTES)
        frame = parse_frame(data) if len(data) == HEADER_BYTES else None
    except (OSError, FrameRefused):
        return None
    return frame if frame is not None and frame.kind is TcpFrameKind.HELLO else None
