"""Packets in a ring of bytes at the peer: where each lies, and when its place is free again. Pure.

Both ends do the same arithmetic, so an immediate says how long a write is and no place is sent. A place is free when
its write is acknowledged: an endpoint acknowledges in the part of a turn that comes after events are handed on
(hosts/turns.py), and by then the receiver has given the packets to its kernel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Post = Callable[[memoryview, int, int], None]
"""Writes these bytes to an offset of the peer's ring, with this immediate."""


class OutgoingRing:
    """The sending end. `batch_bytes`: packets that follow each other share a write up to this length.

    An empty ring has room for a packet of half its size, wherever its head is: no packet crosses the end.
    """

    __slots__ = ("_batch", "_batch_bytes", "_bytes", "_head", "_open", "_post", "_posted", "_tail", "progress_ns")

    def __init__(self, size: int, batch_bytes: int, post: Post) -> None:
        self._bytes = memoryview(bytearray(size))
        self._batch_bytes = batch_bytes
        self._post = post
        self._head = 0
        """Bytes taken since the beginning, those left free at the end of the ring included."""
        self._tail = 0
        """The same of those that are free again."""
        self._open = 0
        """Where the write begins that is not posted yet."""
        self._batch = 0
        """Its length."""
        self._posted: deque[int] = deque()
        """Where each write ends that is not acknowledged, as `_head` counts."""
        self.progress_ns = 0
        """When the ring was last empty or acknowledged something."""

    @property
    def held_bytes(self) -> int:
        """What is not acknowledged, with what could not be used."""
        return self._head - self._tail

    def put(self, packet: memoryview, now_ns: int) -> bool:
        """Take a packet, which is written at `flush` at the latest. False, and nothing is done, if there is no room."""
        size, room = len(packet), len(self._bytes)
        at = self._head % room
        left = room - at if at + size > room else 0
        if left or self._batch + size > self._batch_bytes:
            self.flush()
        if self._head + left + size - self._tail > room:
            return False
        if not self._posted and not self._batch:
            self.progress_ns = now_ns
        at = 0 if left else at
        self._bytes[at : at + size] = packet
        self._head += left + size
        if not self._batch:
            self._open = at
        self._batch += size
        return True

    def flush(self) -> None:
        """Post what was put since the last time."""
        if self._batch:
            begin, length = self._open, self._batch
            self._batch = 0
            self._posted.append(self._head)
            self._post(self._bytes[begin : begin + length], begin, length)

    def acknowledged(self, now_ns: int) -> None:
        """The oldest write is acknowledged."""
        self._tail = self._posted.popleft()
        self.progress_ns = now_ns


class IncomingRing:
    """The receiving end over its registered region."""

    __slots__ = ("_at", "_region")

    def __init__(self, region: memoryview) -> None:
        self._region = region
        self._at = 0

    def take(self, length: int) -> memoryview:
        """What the next write brought. Raises ValueError for a length that no write can have."""
        room = len(self._region)
        if not 0 < length <= room:
            raise ValueError(f"a write of {length} bytes into a ring of {room}")
        begin = 0 if self._at + length > room else self._at
        self._at = begin + length
        return self._region[begin : begin + length]
