"""The two ends of a stream of messages over one QP: what to write next, and whether what came is right. Pure.

Message i goes into slot i modulo `slots` of the receiver's region, with immediate i. The content is a part of a block
(hosts/blocks.py) that both ends make from the seed and the QP's name, and every message takes it as a step of its own:
bytes of an earlier message in the slot, or of another stream, never pass for right, and no message is copied to be
sent. The last message is empty; its immediate says how many went before.

Slots may be used again because a sender has at most `depth` messages without acknowledgement. Message i + `slots` is
posted only when message i + `slots` - `depth` is acknowledged, so not before the receiver was told of that one: a check
of message i that is done in turns must be over before the turn in which that number of further messages has come ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mrc_testbed.hosts.blocks import PERIOD, Block, random_period
from mrc_testbed.hosts.common.timers import NEVER

GRAIN_NS = 100_000_000
"""Figures of a stream are reported for stretches of this length, counted from the start of the program on all hosts."""
LAST = 1 << 31
"""This bit of an immediate marks the last message."""
_COUNT = LAST - 1


class ReceivedInterval(NamedTuple):
    """What came between two moments; only the last one of a stream ends before its grain does. `bytes`: placed in
    memory, by the packet; `messages`: whole and compared, `bytes_wrong` of them."""

    begin_ns: int
    end_ns: int
    bytes: int
    messages: int
    bytes_wrong: int
    last: bool


class StreamError(Exception):
    """An immediate that a stream did not expect. The text is for the user."""


class Content:
    """The bytes of every message of one stream. `longest`: as much as must be had in one piece."""

    def __init__(self, data_seed: int, qp: str, longest: int) -> None:
        self._block = Block(random_period(data_seed, qp), longest)

    def of(self, index: int, size: int) -> memoryview:
        """The content of message `index`; it never changes."""
        return self._block.at(index, 0, size)

    def wrong_bytes(self, index: int, at: int, found: memoryview) -> int:
        """How many bytes of `found` differ from those of message `index` from `at` on."""
        return self._block.wrong_bytes(found, index, at)


class Outgoing:
    """The sending end: from `begin_ns` until `until_ns`, or `messages` messages (0: no limit), whichever is first.

    `completed` holds, for every message that was acknowledged, when that was noticed and how long it had taken since
    the message was posted; who drives the stream takes them out.
    """

    def __init__(
        self, content: Content, message_bytes: int, slots: int, depth: int, until_ns: int | None, messages: int
    ) -> None:
        self._content = content
        self._size = message_bytes
        self._slots = slots
        self._depth = depth
        self._until_ns = NEVER if until_ns is None else until_ns
        self._messages = messages or NEVER
        self._posted = 0
        self._ended = False
        self._posted_ns: deque[int] = deque()
        self.completed: list[tuple[int, int]] = []

    @property
    def done(self) -> bool:
        """The last message is acknowledged."""
        return self._ended and not self._posted_ns

    def complete(self, now_ns: int, outstanding: int) -> None:
        """All writes but the newest `outstanding` are acknowledged; writes complete in order."""
        while len(self._posted_ns) > outstanding:
            posted_ns = self._posted_ns.popleft()
            if self._posted_ns or not self._ended:  # the empty one at the end is no message
                self.completed.append((now_ns, now_ns - posted_ns))

    def writes(self, now_ns: int) -> Iterator[tuple[memoryview, int, int]]:
        """What can be posted now: data, offset in the peer's region, immediate."""
        while len(self._posted_ns) < self._depth and not self._ended:
            self._posted_ns.append(now_ns)
            index = self._posted
            if index >= self._messages or now_ns >= self._until_ns:
                self._ended = True
                yield self._content.of(0, 0), 0, LAST | index & _COUNT
            else:
                self._posted += 1
                yield self._content.of(index, self._size), index % self._slots * self._size, index & _COUNT


class Incoming:
    """The receiving end. `take_placed`: the bytes placed so far up to the mark that it was given last, and the next
    mark (mrc_testbed.hosts.common.placed)."""

    def __init__(
        self,
        content: Content,
        region: memoryview,
        message_bytes: int,
        slots: int,
        take_placed: Callable[[int], int],
        origin_ns: int,
        grain_ns: int = GRAIN_NS,
    ) -> None:
        self._content = content
        self._region = region
        self._size = message_bytes
        self._slots = slots
        self._received = 0
        self._take_placed = take_placed
        self._begin_ns = origin_ns
        self._grain_ns = grain_ns
        self._messages = self._wrong = 0
        self.done = False

    @property
    def report_ns(self) -> int:
        """When the stretch that is being counted ends."""
        return self._begin_ns + self._grain_ns

    def take(self, immediate: int, may_rest: Callable[[], bool]) -> Iterator[None]:
        """The next message is there: check it, and yield wherever others may have their turn while `may_rest()`.

        Raises StreamError when it is not the one that was due.
        """
        if immediate & LAST:
            self.done = True
        if immediate & _COUNT != self._received & _COUNT:
            raise StreamError(f"message {immediate & _COUNT} arrived instead of {self._received & _COUNT}")
        if self.done:
            return
        slot = self._region[self._received % self._slots * self._size :][: self._size]
        for at in range(0, self._size, PERIOD):
            if at and may_rest():
                yield
            self._wrong += self._content.wrong_bytes(self._received, at, slot[at : at + PERIOD])
        self._messages += 1
        self._received += 1

    def intervals(self, now_ns: int) -> Iterator[ReceivedInterval]:
        """The stretches that are over, also those in which nothing came."""
        while now_ns >= self.report_ns:
            yield self._interval(self.report_ns, False)
        if self.done:
            yield self._interval(now_ns, True)

    def _interval(self, end_ns: int, last: bool) -> ReceivedInterval:
        begin_ns, self._begin_ns = self._begin_ns, end_ns
        placed = self._take_placed(self.report_ns)
        found = ReceivedInterval(begin_ns, end_ns, placed, self._messages, self._wrong, last)
        self._messages = self._wrong = 0
        return found
