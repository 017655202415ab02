"""The connection of one program: its records in, and ours out, without ever waiting for it."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections import deque

from mrc_testbed.hosts.verbs.messages import FORMS, MOST_NEWS, MOST_POSTS, RECORD_BYTES, RecordKind
from mrc_testbed.hosts.verbs.refusal import Malformed

MOST_UNREAD = 1 << 16
"""Answers, events and EV states that may wait for a program."""
_MOST_DESCRIPTORS = 4


class ProgramConnection:
    """A socket of records. `send` queues; `flush` gives the kernel what it takes."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.setblocking(False)
        self._buffer = bytearray(MOST_POSTS * RECORD_BYTES + 1)
        self.view = memoryview(self._buffer)
        self._waiting: deque[bytes] = deque()
        self._unread = 0
        """Of those, at the most, what `tell` has queued."""
        self.full = False
        """The kernel took no more: wait until the socket can be written."""

    def fileno(self) -> int:
        """Of the socket."""
        return self._socket.fileno()

    def first(self) -> tuple[memoryview, list[int]] | None:
        """The first datagram, and the descriptors that came with it; None: not there yet. Raises OSError, Malformed."""
        try:
            data, ancillary, _, _ = self._socket.recvmsg(
                len(self._buffer), socket.CMSG_SPACE(_MOST_DESCRIPTORS * struct.calcsize("i")), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return None
        descriptors: list[int] = []
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                count = len(content) // 4
                descriptors += struct.unpack(f"{count}i", content[: 4 * count])
        if not data and not descriptors:
            raise ConnectionResetError(errno.ECONNRESET, "the program has ended")
        if len(data) != RECORD_BYTES:
            for each in descriptors:
                os.close(each)
            raise Malformed(f"a first datagram of {len(data)} bytes")
        return memoryview(data), descriptors

    def receive(self) -> int:
        """Put the next datagram into `view`; its size, 0 if none came. Raises OSError at the end of the program, and
        Malformed for what is no row of records."""
        try:
            size = self._socket.recv_into(self._buffer)
        except BlockingIOError:
            return 0
        if not size:
            raise ConnectionResetError(errno.ECONNRESET, "the program has ended")
        if size % RECORD_BYTES or size > MOST_POSTS * RECORD_BYTES:
            raise Malformed(f"a datagram of {size} bytes")
        return size

    def reply(self, token: int, value: int = 0, error: int = 0, words: str = "") -> None:
        """Answer a request."""
        text = words.encode()[:95]
        self.tell(FORMS[RecordKind.REPLY].pack(error=error, token=token, value=value, text=text))

    def send(self, record: bytes) -> None:
        """Queue one record; there are never more than the program has posted."""
        self._waiting.append(record)

    def tell(self, record: bytes) -> None:
        """Queue one of those that nothing bounds but the program's reading."""
        self._unread += 1
        self.send(record)

    def flush(self) -> None:
        """Send what the kernel takes. Raises OSError when the program has gone, and Malformed when it does not read."""
        self._send_waiting()
        self._unread = min(self._unread, len(self._waiting))
        if self._unread > MOST_UNREAD:
            raise Malformed(f"it leaves {self._unread:,} answers unread")

    def _send_waiting(self) -> None:
        waiting = self._waiting
        self.full = False
        while waiting:
            part = [waiting[index] for index in range(min(len(waiting), MOST_NEWS))]
            try:
                self._socket.sendmsg(part, (), socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                self.full = True
                return
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    self.full = True
                    return
                raise
            for _ in part:
                waiting.popleft()

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self._socket.close()
