"""One TCP connection: frames out, and frames in with their payload put where it belongs.

TCP keeps the order, so placing is simple: a payload is received into the region itself. The kernel wakes the reader
when all of it is there (SO_RCVLOWAT), not for every packet.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable

from mrc_testbed.hosts.ktcp.frames import HEADER_BYTES, FrameHeader, FrameRefused, emit_frame, parse_frame
from mrc_testbed.hosts.ktcp.kernel import TcpInfo, tcp_info
from mrc_testbed.hosts.ktcp.subflows import Ends, Subflows

Place = Callable[[FrameHeader], memoryview]
"""Where the payload of a write belongs. Raises FrameRefused."""
Take = Callable[[FrameHeader, int], None]
"""A frame is whole at this time, its payload placed. Raises FrameRefused."""
Note = Callable[[int], None]
"""That many bytes of a payload are placed."""

_MOST_BUFFERS = 32
"""Given to one sendmsg."""
_MOST_READ_BYTES = 1 << 20
"""In one turn, so that sending and timers are never put off for long."""
_MOST_AWAITED_BYTES = 1 << 18
"""Most bytes that a sleeping reader waits for: the window has to open while a longer payload comes."""
NOTHING = memoryview(b"")
"""The payload of most frames."""


class ConnectionEnded(Exception):
    """The connection is of no use any more. The text is the kernel's."""


class Connection:
    """A connected (or connecting) socket that does not block."""

    def __init__(self, connected: socket.socket, place: Place, take: Take, note: Note) -> None:
        self._socket = connected
        self._subflows = Subflows(connected) if connected.proto == socket.IPPROTO_MPTCP else None
        self._place = place
        self._take = take
        self._note = note
        self._outgoing: deque[memoryview] = deque()
        self._header = memoryview(bytearray(HEADER_BYTES))
        self._header_rest = self._header
        self._frame: FrameHeader | None = None
        """Whose payload is coming."""
        self._payload_rest = NOTHING
        self._awaited = 1

    def fileno(self) -> int:
        """For epoll."""
        return self._socket.fileno()

    def info(self) -> TcpInfo:
        """The kernel's figures. Raises OSError."""
        try:
            if self._subflows is not None:
                return self._subflows.info()
        except OSError as error:
            self._fall_back(error)
        return tcp_info(self._socket)

    def flows(self) -> list[Ends]:
        """Of this connection, or of each of its subflows; none when the kernel has given the connection up."""
        try:
            return self._ends()
        except OSError:
            return []

    def _ends(self) -> list[Ends]:
        try:
            if self._subflows is not None:
                return self._subflows.ends()
        except OSError as error:
            self._fall_back(error)
        own, peer = self._socket.getsockname(), self._socket.getpeername()
        return [(own[0], own[1], peer[1])]

    def _fall_back(self, error: OSError) -> None:
        """MPTCP becomes TCP for good where its SYNs were lost or the peer does not speak it (RFC 8684, 3.7)."""
        if error.errno not in (errno.ENOPROTOOPT, errno.EOPNOTSUPP):
            raise error
        self._subflows = None

    def close(self) -> None:
        """At once: what is under way is of no use to anybody."""
        self._socket.close()

    # --- out ---

    def queue(self, header: FrameHeader, payload: memoryview = NOTHING) -> None:
        """Have a frame sent by `flush`. The payload is not copied."""
        self._outgoing.append(memoryview(emit_frame(header)))
        if payload:
            self._outgoing.append(payload)

    def flush(self) -> bool:
        """Send what the kernel takes; returns whether that was all. Raises ConnectionEnded."""
        outgoing = self._outgoing
        try:
            while outgoing:
                self._sent(self._socket.sendmsg([outgoing[i] for i in range(min(len(outgoing), _MOST_BUFFERS))]))
        except BlockingIOError:
            return False
        except OSError as error:
            raise ConnectionEnded(text_of(error.errno or errno.EIO)) from None
        return True

    def _sent(self, size: int) -> None:
        outgoing = self._outgoing
        while outgoing and size >= len(outgoing[0]):
            size -= len(outgoing.popleft())
        if size:
            outgoing[0] = outgoing[0][size:]

    # --- in ---

    def receive(self, now_ns: int) -> bool:
        """Take in what has come; returns whether there may be more. Raises ConnectionEnded, FrameRefused."""
        left = _MOST_READ_BYTES
        while left > 0 and (size := self._read(now_ns)):
            left -= size
        # Also with more to read: the kernel does not call less than the awaited bytes readable.
        self._await()
        return left <= 0

    def _read(self, now_ns: int) -> int:
        """One piece: the rest of a payload and the header behind it at once."""
        buffers = [self._payload_rest, self._header_rest] if self._payload_rest else [self._header_rest]
        try:
            size = self._socket.recvmsg_into(buffers)[0]
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ConnectionEnded(text_of(error.errno or errno.EIO)) from None
        if not size:
            raise ConnectionEnded("closed by the peer")
        self._received(size, now_ns)
        return size

    def _received(self, size: int, now_ns: int) -> None:
        placed = min(size, len(self._payload_rest))
        if placed:
            self._note(placed)
            self._payload_rest = self._payload_rest[placed:]
            if not self._payload_rest:
                self._finish(now_ns)
        if size > placed:
            self._header_rest = self._header_rest[size - placed :]
            if not self._header_rest:
                self._begin(parse_frame(self._header), now_ns)

    def _begin(self, frame: FrameHeader, now_ns: int) -> None:
        self._header_rest = self._header
        self._frame = frame
        if frame.length:
            self._payload_rest = self._place(frame)
        else:
            self._finish(now_ns)

    def _finish(self, now_ns: int) -> None:
        frame, self._frame, self._payload_rest = self._frame, None, NOTHING
        if frame is None:
            raise FrameRefused("payload of no frame")
        self._take(frame, now_ns)

    def _await(self) -> None:
        """Sleep until the rest of the payload is there, or the next header."""
        awaited = min(len(self._payload_rest), _MOST_AWAITED_BYTES) or len(self._header_rest)
        if awaited != self._awaited:
            self._awaited = awaited
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited)


def text_of(code: int) -> str:
    """The kernel's words for an errno, "" for 0."""
    return os.strerror(code) if code else ""
