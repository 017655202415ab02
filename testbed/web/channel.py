"""Messages between a run and its web server over a pair of Unix sockets: a kind and JSON in each.

The run never waits for the server: a message that does not fit is not sent. Messages are always whole, even if the
writer is killed.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

_BUFFER_BYTES = 1 << 20
"""Room for a second of frames of a large fabric, while the server is busy."""
_MOST_BYTES = 1 << 16
"""Of a message: a longer body travels as a file in memory, because the kernel may allow less room than is asked for."""
_RIGHTS_BYTES = socket.CMSG_SPACE(4 * array("i").itemsize)


class ChannelMessage(NamedTuple):
    """`body` is JSON in one line. `files`: received descriptors; the receiver closes them."""

    kind: str
    body: bytes
    files: tuple[int, ...] = ()

    @property
    def content(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


class Closed(Exception):
    """The other end has closed."""


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep message boundaries."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return ends


class Channel:
    """One end. Several processes may share it, if they use it one after the other."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def send(self, kind: str, content: Any, patience_s: float = 0.0, files: Sequence[int] = ()) -> bool:
        """Send within that time; False if the other end is slow or gone."""
        head, body = kind.encode() + b"\n", json.dumps(content, separators=(",", ":")).encode()
        if len(head) + len(body) <= _MOST_BYTES:
            return self._send(head + body, files, patience_s)
        with _in_memory(body) as file:
            return self._send(head, [*files, file.fileno()], patience_s)

    def _send(self, data: bytes, files: Sequence[int], patience_s: float) -> bool:
        # Not socket.send_fds and recv_fds: they leave out the flags that they are given (Python 3.11).
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files))] if files else []
        deadline = time.monotonic() + patience_s
        while True:
            try:
                self.socket.sendmsg([data], rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                return True
            except BlockingIOError:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not select.select([], [self.socket], [], left_s)[1]:
                    return False
            except OSError:
                return False

    def receive(self, wait: bool = True) -> ChannelMessage | None:
        """The next message, None if there is none yet. Raises Closed."""
        flags = 0 if wait else socket.MSG_DONTWAIT
        try:
            data, rights, _, _ = self.socket.recvmsg(_MOST_BYTES, _RIGHTS_BYTES, flags)
        except BlockingIOError:
            return None
        except ConnectionError:
            raise Closed from None
        if not data:
            raise Closed
        kind, _, body = data.partition(b"\n")
        files = list(_descriptors(rights))
        if not body and files:
            with os.fdopen(files.pop(), "rb") as file:
                body = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
        return ChannelMessage(kind.decode(), body, tuple(files))

    def close(self) -> None:
        """Close the channel in this process."""
        self.socket.close()


def _in_memory(body: bytes) -> IO[bytes]:
    file = os.fdopen(os.memfd_create("message", os.MFD_CLOEXEC), "wb", buffering=0)
    left = memoryview(body)
    while left:
        left = left[file.write(left) :]
    return file


def _descriptors(rights: Sequence[tuple[int, int, bytes]]) -> Iterator[int]:
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            yield from array("i", data)
