"""Flows that arrive over time between two hosts, each of its own size: what the sender writes next, and whether what
came is right. Pure.

The QPs of the pair are lanes. A flow takes the lane with the fewest bytes that are not acknowledged when it arrives,
waits there behind the flows before it, and is cut into messages. A message goes into slot i modulo `slots` of its
lane's region, where i counts the messages of the lane. The immediate of a flow's first message is the number of the
flow, with the bit FIRST; of any other message it is the place of the message in its flow. When all flows are
acknowledged each lane has an empty last message, whose immediate says how many went before (hosts/stream.py, which
also says why slots may be used again).

A flow begins when it arrives, whether its lane is free or not, and ends when its last message is acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mrc_testbed.hosts.blocks import PERIOD
from mrc_testbed.hosts.stream import GRAIN_NS, LAST, Content, Incoming, StreamError

FIRST = 1 << 30
"""This bit of an immediate marks the first message of a flow."""
NUMBERS = FIRST - 1
_NO_FLOW = -1


class FlowDone(NamedTuple):
    """A flow that ended: its number in the list of its pair, when that was noticed, and how long it took."""

    number: int
    end_ns: int
    took_ns: int


class _Sent(NamedTuple):
    """A message that is not acknowledged. `ends`: the number of the flow whose last one it is, _NO_FLOW if none."""

    size: int
    ends: int


FlowWrite = tuple[str, memoryview, int, int]
"""A message that can be posted: QP, data, offset, immediate. A named tuple would not compile: mypyc, memoryview."""


class _Lane:
    """One QP of the pair, and what waits for it. `backlog`: bytes that came to it and are not acknowledged."""

    def __init__(self, qp: str, content: Content) -> None:
        self.qp = qp
        self.content = content
        self.backlog = 0
        self.waiting: deque[int] = deque()
        self.at = 0
        """Bytes of the first of those that are posted."""
        self.posted = 0
        self.sent: deque[_Sent] = deque()


class OutgoingFlows:
    """The sending end. `flows`: begin (ns, in order) and bytes of each. `completed` holds what ended, for who drives
    this to take out."""

    def __init__(
        self,
        contents: Sequence[tuple[str, Content]],
        message_bytes: int,
        slots: int,
        depth: int,
        flows: Sequence[tuple[int, int]],
    ) -> None:
        self._lanes = [_Lane(qp, content) for qp, content in contents]
        self._size = message_bytes
        self._slots = slots
        self._depth = depth
        self._flows = flows
        self._arrived = 0
        self._ended = False
        self.completed: list[FlowDone] = []

    @property
    def done(self) -> bool:
        """The last message of each lane is acknowledged."""
        return self._ended and not any(lane.sent for lane in self._lanes)

    @property
    def next_ns(self) -> int | None:
        """When the next flow arrives; None after the last one."""
        return self._flows[self._arrived][0] if self._arrived < len(self._flows) else None

    def complete(self, now_ns: int, outstanding: Callable[[str], int]) -> None:
        """`outstanding`: how many of the newest writes on a QP are not acknowledged; writes complete in order."""
        for lane in self._lanes:
            left = outstanding(lane.qp)
            while len(lane.sent) > left:
                size, ends = lane.sent.popleft()
                lane.backlog -= size
                if ends != _NO_FLOW:
                    self.completed.append(FlowDone(ends, now_ns, now_ns - self._flows[ends][0]))

    def writes(self, now_ns: int) -> Iterator[FlowWrite]:
        """What can be posted now."""
        while (next_ns := self.next_ns) is not None and next_ns <= now_ns:
            lane = min(self._lanes, key=_backlog)
            lane.waiting.append(self._arrived)
            lane.backlog += self._flows[self._arrived][1]
            self._arrived += 1
        for lane in self._lanes:
            while len(lane.sent) < self._depth and lane.waiting:
                yield self._next_of(lane)
        if not self._ended and self._arrived == len(self._flows) and not any(lane.sent for lane in self._lanes):
            self._ended = True
            for lane in self._lanes:
                lane.sent.append(_Sent(0, _NO_FLOW))
                yield lane.qp, lane.content.of(0, 0), 0, LAST | lane.posted & NUMBERS

    def _next_of(self, lane: _Lane) -> FlowWrite:
        number = lane.waiting[0]
        left = self._flows[number][1] - lane.at
        size = min(left, self._size)
        immediate = FIRST | number if lane.at == 0 else lane.at // self._size
        lane.at += size
        if size == left:
            lane.waiting.popleft()
            lane.at = 0
        lane.sent.append(_Sent(size, number if size == left else _NO_FLOW))
        index = lane.posted
        lane.posted += 1
        return lane.qp, lane.content.of(index, size), index % self._slots * self._size, immediate


def _backlog(lane: _Lane) -> int:
    return lane.backlog


class IncomingFlows(Incoming):
    """The receiving end of one lane. `sizes`: bytes of each flow of the pair."""

    def __init__(
        self,
        content: Content,
        region: memoryview,
        message_bytes: int,
        slots: int,
        take_placed: Callable[[int], int],
        origin_ns: int,
        sizes: Sequence[int],
        grain_ns: int = GRAIN_NS,
    ) -> None:
        super().__init__(content, region, message_bytes, slots, take_placed, origin_ns, grain_ns)
        self._sizes = sizes
        self._flow_bytes = 0
        self._left = 0

    def take(self, immediate: int, may_rest: Callable[[], bool]) -> Iterator[None]:
        """The next message is there: check it as `Incoming.take` does. Raises StreamError when it is not the one that
        was due."""
        if immediate & LAST:
            self.done = True
            if self._left or immediate & NUMBERS != self._received & NUMBERS:
                raise StreamError(f"the stream ended after {self._received} messages, {self._left} B of a flow missing")
            return
        self._begin(immediate)
        size = min(self._left, self._size)
        slot = self._region[self._received % self._slots * self._size :][:size]
        for at in range(0, size, PERIOD):
            if at and may_rest():
                yield
            self._wrong += self._content.wrong_bytes(self._received, at, slot[at : at + PERIOD])
        self._left -= size
        self._messages += 1
        self._received += 1

    def _begin(self, immediate: int) -> None:
        """The next flow, or the next message of the one that came last."""
        number = immediate & NUMBERS
        if immediate & FIRST:
            if self._left or number >= len(self._sizes):
                raise StreamError(f"flow {number} began, {self._left} B of the one before it missing")
            self._flow_bytes = self._left = self._sizes[number]
        elif not self._left or number * self._size != self._flow_bytes - self._left:
            raise StreamError(f"message {number} of a flow arrived, whose other end has {self._left} B left")
