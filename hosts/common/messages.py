"""Writes on their way out: cut into packets, counted, completed."""

from __future__ import annotations

from collections import deque

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.common.memory import ReadableMemory


class Message:
    """One posted write. `msn` and later fields are set when its first packet is sent. `address` and `rkey` are the
    peer's."""

    __slots__ = (
        "address",
        "data",
        "first",
        "fixed",
        "immediate",
        "last",
        "last_index",
        "msn",
        "rkey",
        "rqmsn",
        "wr_id",
    )

    def __init__(
        self, data: ReadableMemory, address: int, rkey: int, wr_id: int, immediate: int | None, payload_bytes: int
    ) -> None:
        self.data = data
        self.fixed = isinstance(data, memoryview) and isinstance(data.obj, bytes)
        """These bytes can never change, so packets need no copy of them."""
        self.address = address
        self.rkey = rkey
        self.wr_id = wr_id
        self.immediate = immediate
        self.last_index = max(-(-len(data) // payload_bytes), 1) - 1
        """Index of the last packet; an empty write is one packet without payload."""
        self.msn = 0
        self.rqmsn = 0
        self.first = 0
        """Sequence number of packet 0."""
        self.last = 0

    def opcode(self, index: int) -> int:
        """Opcode of packet `index`."""
        if index < self.last_index:
            return bth.WRITE_MIDDLE if index else bth.WRITE_FIRST
        if self.immediate is None:
            return bth.WRITE_LAST if index else bth.WRITE_ONLY
        return bth.WRITE_LAST_IMM if index else bth.WRITE_ONLY_IMM


NO_MESSAGE = Message(memoryview(b""), 0, 0, 0, None, 1)
"""Fills places where no message has been yet."""


class Outbox:
    """Messages of one QP: waiting, being sent, sent and not completed."""

    __slots__ = ("_cursor", "_max_wimm", "_msn", "_open_wimm", "_rqmsn", "_uncompleted", "_waiting")

    def __init__(self, max_wimm: int) -> None:
        self._max_wimm = max_wimm
        self._waiting: deque[Message] = deque()
        """The first one may be partly sent."""
        self._cursor = 0
        """Next packet of the first waiting message."""
        self._uncompleted: deque[Message] = deque()
        self._msn = 0
        self._rqmsn = 0
        self._open_wimm = 0
        """WRITE-with-immediate messages begun and not completed."""

    def post(self, message: Message) -> None:
        """Queue a message."""
        self._waiting.append(message)

    def idle(self) -> bool:
        """Nothing to send and nothing to wait for."""
        return not self._waiting and not self._uncompleted

    def has_packet(self) -> bool:
        """May another new packet be sent, as far as the messages go? The peer bounds open immediates (max_wimm)."""
        waiting = self._waiting
        if not waiting:
            return False
        return bool(self._cursor) or waiting[0].immediate is None or self._open_wimm < self._max_wimm

    def next_packet(self, seq: int) -> Message:
        """The message whose next packet takes sequence number `seq`. Only when `has_packet`."""
        message = self._waiting[0]
        if not self._cursor:
            self._begin(message, seq)
        if self._cursor == message.last_index:
            self._waiting.popleft()
            self._cursor = 0
        else:
            self._cursor += 1
        return message

    def _begin(self, message: Message, seq: int) -> None:
        message.first = seq
        message.last = seq + message.last_index
        self._msn += 1
        message.msn = self._msn & 0xFFFF
        message.rqmsn = self._rqmsn & 0xFFFF
        if message.immediate is not None:
            self._rqmsn += 1
            self._open_wimm += 1
        self._uncompleted.append(message)

    def complete(self, covered: int) -> list[Message]:
        """Messages whose last packet is covered by a Transport ACK up to `covered`."""
        done = []
        while self._uncompleted and self._uncompleted[0].last <= covered:
            message = self._uncompleted.popleft()
            if message.immediate is not None:
                self._open_wimm -= 1
            done.append(message)
        return done

    def holding(self, seq: int) -> Message:
        """The message, begun and not completed, that packet `seq` is of."""
        return next(message for message in self._uncompleted if seq <= message.last)

    def clear(self) -> None:
        """Forget everything (QP error)."""
        self._waiting.clear()
        self._uncompleted.clear()
