"""A QP over kernel TCP: its region, its connection, the writes that wait for their completions."""

from __future__ import annotations

import socket
from collections import deque

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, QpEvent, WriteCompleted
from mrc_testbed.hosts.common.placed import PlacedBytes
from mrc_testbed.hosts.common.qpstate import TRANSITIONS, QpInput, QpState
from mrc_testbed.hosts.common.stalls import StallWatch
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.common.transitions import step
from mrc_testbed.hosts.ktcp.attributes import TcpQpAttributes
from mrc_testbed.hosts.ktcp.connection import NOTHING, Connection
from mrc_testbed.hosts.ktcp.counters import TcpCounters
from mrc_testbed.hosts.ktcp.frames import FrameHeader, FrameRefused, TcpFrameKind


class TcpQp:
    """One QP. `connection` is there once the peer's side is known and one of both has dialled."""

    def __init__(
        self,
        peer: int,
        attributes: TcpQpAttributes,
        watch: StallWatch,
        events: deque[QpEvent],
        counters: TcpCounters,
    ) -> None:
        self.peer = peer
        self.attributes = attributes
        self.region = memoryview(bytearray(attributes.region_bytes))
        self.watch = watch
        self.placed = PlacedBytes()
        self.remote: TcpQpAttributes | None = None
        self.connection: Connection | None = None
        self.dialling: socket.socket | None = None
        self.blocked = False
        """Does the kernel take no more for now?"""
        self.ended = ""
        """Why there is no connection any more."""
        self.probed = False
        """Has the peer answered a probe?"""
        self._bytes_acked = 0
        """When progress was last looked for."""
        self._events = events
        self._counters = counters
        self._state = QpState.RESET
        self._unanswered: deque[int] = deque()
        """Writes posted and not completed."""
        self._queued: deque[tuple[FrameHeader, memoryview]] = deque()
        """Frames posted before there was a connection."""
        self._owed = 0
        """Completions that the peer is to be told of."""
        self.step(QpInput.OPEN)

    def step(self, event: QpInput) -> None:
        """Take the table's step. Raises QpStateError."""
        new = step(TRANSITIONS, self._state, event)
        if new is None:
            raise QpStateError(self.attributes.qpn, self._state.value, event.value)
        self._state = new

    @property
    def live(self) -> bool:
        """May anything be sent and received?"""
        return self._state is QpState.RTS

    @property
    def outstanding(self) -> bool:
        """Is a write not completed?"""
        return bool(self._unanswered)

    # --- application ---

    def learn(self, remote: TcpQpAttributes) -> None:
        """The peer's side is known: writes may be posted, and go when there is a connection."""
        self.step(QpInput.LEARN_PEER)
        self.step(QpInput.ENABLE_SEND)
        self.remote = remote

    def post(self, data: memoryview, address: int, wr_id: int, immediate: int | None) -> None:
        """Queue one write."""
        if not self.live:
            raise QpStateError(self.attributes.qpn, self._state.value, "post a write")
        kind = TcpFrameKind.WRITE if immediate is None else TcpFrameKind.WRITE_IMMEDIATE
        self._unanswered.append(wr_id)
        self._counters.messages_posted += 1
        self.send(FrameHeader(kind, address, len(data), immediate or 0), data)

    def send(self, header: FrameHeader, payload: memoryview = NOTHING) -> None:
        """Have a frame sent, in its turn."""
        if self.connection is None:
            self._queued.append((header, payload))
        else:
            self.connection.queue(header, payload)

    def fail(self, reason: str) -> None:
        """Any live state -> ERROR: tell the application. The connection is gone already."""
        self.step(QpInput.FAIL)
        self._forget()
        self._counters.qp_errors += 1
        self._events.append(QpError(self.attributes.qpn, self.peer, reason))

    def reset(self, attributes: TcpQpAttributes) -> None:
        """RESET -> INIT with new attributes of this side: the same region, and nothing else of before."""
        self.attributes = attributes
        self._forget()
        self.remote, self.ended, self.probed = None, "", False
        self.placed = PlacedBytes()
        self.watch.idle()
        self.step(QpInput.OPEN)

    def _forget(self) -> None:
        self._queued.clear()
        self._unanswered.clear()
        self._owed = 0

    # --- connection ---

    def attach(self, connection: Connection, hello: FrameHeader | None) -> None:
        """This connection is the QP's from now on; the end that dialled says `hello` first."""
        self.connection = connection
        self.blocked, self._bytes_acked = False, 0
        if hello is not None:
            connection.queue(hello)
        while self._queued:
            connection.queue(*self._queued.popleft())

    def flush(self, now_ns: int) -> bool:
        """Send what the kernel takes; returns whether that was all. Raises ConnectionEnded."""
        if self._unanswered and self.watch.since_ns == NEVER:
            self._begin_watch(now_ns)
        if self.connection is None:
            return True
        if self._owed:
            self.connection.queue(FrameHeader(TcpFrameKind.COMPLETED, number=self._owed))
            self._owed = 0
        return self.connection.flush()

    def _begin_watch(self, now_ns: int) -> None:
        self.watch.posted(now_ns)
        if self.connection is not None:
            self._bytes_acked = self.connection.info().bytes_acked

    def place(self, frame: FrameHeader) -> memoryview:
        """Where the payload of a write belongs."""
        end = frame.address + frame.length
        if end > len(self.region):
            raise FrameRefused(f"write to {frame.address}..{end} of a region of {len(self.region)} bytes")
        return self.region[frame.address : end]

    def note(self, size: int) -> None:
        """Bytes of a payload are placed. The kernel does not tell when they arrived: what is read before a stretch is
        reported counts for it."""
        self.placed.note(size, 0)

    def take(self, frame: FrameHeader, now_ns: int) -> None:
        """One whole frame. Raises FrameRefused."""
        if frame.kind in (TcpFrameKind.WRITE, TcpFrameKind.WRITE_IMMEDIATE):
            self._owed += 1
            if frame.kind is TcpFrameKind.WRITE_IMMEDIATE:
                self._counters.immediates += 1
                self._events.append(ImmediateDelivered(self.attributes.qpn, frame.number, 0))
        elif frame.kind is TcpFrameKind.COMPLETED:
            self._complete(frame.number, now_ns)
        elif frame.kind is TcpFrameKind.PROBE:
            self.send(FrameHeader(TcpFrameKind.PROBED))
        elif frame.kind is TcpFrameKind.PROBED:
            self.probed = True
        else:
            raise FrameRefused(f"{frame.kind.name} in the middle of a connection")

    def _complete(self, number: int, now_ns: int) -> None:
        if number > len(self._unanswered):
            raise FrameRefused(f"{number} writes completed of {len(self._unanswered)}")
        for _ in range(number):
            self._events.append(WriteCompleted(self.attributes.qpn, self._unanswered.popleft()))
        self._counters.messages_completed += number
        self.watch.progress(now_ns)
        if not self._unanswered:
            self.watch.idle()

    def look_for_progress(self, now_ns: int) -> None:
        """Bytes that the peer's kernel has acknowledged are progress too: a message may take long."""
        if self.connection is None or not self._unanswered:
            return
        info = self.connection.info()
        if info.bytes_acked > self._bytes_acked:
            self._bytes_acked = info.bytes_acked
            self.watch.progress(max(now_ns - info.last_ack_ns, self.watch.since_ns))
