"""Who is connected to the server, and how many connections each may have.

All browsers of this machine come from 127.0.0.1, so the kernel is asked which user has the other end. A limit for each
user keeps the page open to all others, whatever one of them does.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable

MOST_CONNECTIONS = 128
MOST_OF_ONE = 24
"""Pages that one user may watch from: a browser has one connection for each, and a second while it loads."""
_SOCKETS = "/proc/net/tcp"
_ESTABLISHED = "01"
_CHUNK_BYTES = 1 << 16

Address = tuple[str, int]
UserOf = Callable[[Address], str]
"""Names the user at that end of a connection to the server."""


class Visitors:
    """Connections by user; thread-safe."""

    def __init__(self, user_of: UserOf) -> None:
        self._user_of = user_of
        self._lock = threading.Lock()
        self._users: dict[Address, str] = {}
        self._counts: Counter[str] = Counter()

    def enter(self, address: Address) -> str:
        """Let a connection in: empty, or why there is no room for it."""
        user = self._user_of(address)
        with self._lock:
            if len(self._users) >= MOST_CONNECTIONS:
                return f"the server has {MOST_CONNECTIONS} connections, and that is all it takes"
            if self._counts[user] >= MOST_OF_ONE:
                return f"{user} has {MOST_OF_ONE} connections open, and that is all that one may have"
            self._counts[user] += 1
            self._users[address] = user
            return ""

    def leave(self, address: Address) -> None:
        """A connection that was let in has ended."""
        with self._lock:
            self._counts[self._users.pop(address)] -= 1


def users_of_this_machine(port: int) -> UserOf:
    """Tells users by the kernel's list of sockets, or addresses where there is none. `port`: of the server.

    The list stays open: the server opens no file later.
    """
    try:
        listed = os.open(_SOCKETS, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return lambda address: address[0]
    own = _as_listed(("127.0.0.1", port))

    def user_of(address: Address) -> str:
        uid = _uid_of(_content(listed), _as_listed(address), own)
        # Sockets of IPv6 and those closed meanwhile are in no list: all of them count as one user.
        return "an unknown user" if uid is None else f"user {uid}"

    return user_of


def _uid_of(listed: str, theirs: str, own: str) -> int | None:
    for line in listed.splitlines():
        fields = line.split()
        if len(fields) > 7 and fields[1:4] == [theirs, own, _ESTABLISHED]:
            return int(fields[7])
    return None


def _as_listed(address: Address) -> str:
    (host,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{host:08X}:{address[1]:04X}"


def _content(file: int) -> str:
    chunks: list[bytes] = []
    while chunk := os.pread(file, _CHUNK_BYTES, sum(map(len, chunks))):
        chunks.append(chunk)
    return b"".join(chunks).decode()
