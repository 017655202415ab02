"""The delay line: a received packet is handled when it would have arrived, not when the kernel had it.

Two things make that later. Where no netem delays packets on their way, each counts as arrived `delay_ns` after the
kernel's time stamp: that makes T. And where switch ports run the port program, the stamp itself is the time at which
the last bit would have left the last link, had no shaper let a packet go before its time; it may be some packets' time
ahead of the clock (docs/switch.md).

Packets come out in the order of these times. On one path that is the order in which they came, on different paths it is
not, so all that the socket has is read at once and waits here, each packet in a buffer of its own: half a T of traffic.
The daemon sleeps meanwhile: what is not in an empty socket now cannot be due before `delay_ns` from now. For half of
that time turns do not look again, for finding a socket empty costs as much as a packet. After `delay_ns` without a
packet the line waits for the socket itself: a host at rest is not woken to look.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from operator import itemgetter

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.udp import ARRIVAL, MAX_DATAGRAM_BYTES, Datagram, RxSocket

MOST_READ = 128
"""Packets read in one turn, so that timers and sending are never put off for long."""


Waiting = tuple[int, Datagram, memoryview]
"""When a packet is due, the packet, and the buffer that it lies in."""
_due_ns: Callable[[Waiting], int] = itemgetter(0)


class ArrivalLine:
    """Where packets wait until they arrive."""

    def __init__(self, waits_for_socket: bool) -> None:
        self.waits_for_socket = waits_for_socket
        """True while the next packet is waited for at the socket; else at `next_due_ns`."""

    def take_in(self, now_ns: int) -> bool:
        """Read what has come. Returns whether there may be more."""
        raise NotImplementedError

    def receive(self, now_ns: int) -> Datagram | None:
        """The next packet that is due; None when there is none yet. It may be kept until the next call."""
        raise NotImplementedError

    @property
    def next_due_ns(self) -> int:
        """Before this no packet is due."""
        raise NotImplementedError

    def last_due_ns(self, until_ns: int) -> int:
        """When the last packet is due that is due until then; `until_ns` if there is none.

        A turn at that time handles as many packets as one at `until_ns`, and the end of a message without a wait.
        """
        raise NotImplementedError


class DelayLine(ArrivalLine):
    """`take_in` reads, `receive` gives what is due."""

    def __init__(self, receiver: RxSocket, delay_ns: int) -> None:
        super().__init__(waits_for_socket=not delay_ns)
        self._receiver = receiver
        self._delay_ns = delay_ns
        self._waiting: list[Waiting] = []
        """In the order in which they are due. A heap takes longer: few wait, and most belong at the end."""
        self._spare: list[memoryview] = []
        self._lent: memoryview | None = None
        self._unread_from_ns = self._look_from_ns = 0

    def take_in(self, now_ns: int) -> bool:
        """Read what the socket has, MOST_READ packets at most. Returns whether there may be more.

        Nothing is read for half of `delay_ns` after the socket was seen empty.
        """
        if now_ns < self._look_from_ns:
            return False
        receiver, waiting, spare = self._receiver, self._waiting, self._spare
        for taken in range(MOST_READ):
            datagram = receiver.receive(now_ns)
            if datagram is None:
                if receiver.unread:
                    break
                self._look_again(now_ns, at_rest=not (taken or waiting))
                return False
            buffer = receiver.swap(spare.pop() if spare else memoryview(bytearray(MAX_DATAGRAM_BYTES)))
            due_ns = datagram[ARRIVAL]
            if not waiting or waiting[-1][0] <= due_ns:
                waiting.append((due_ns, datagram, buffer))
            else:
                insort(waiting, (due_ns, datagram, buffer), key=_due_ns)
        self._unread_from_ns = self._look_from_ns = now_ns
        return True

    def _look_again(self, now_ns: int, at_rest: bool) -> None:
        """Choose how to wait for what the socket has not got yet. `at_rest`: there was and is no packet."""
        if self._delay_ns:
            self.waits_for_socket = at_rest and (self.waits_for_socket or 0 < self._unread_from_ns <= now_ns)
        self._unread_from_ns = NEVER if self.waits_for_socket else now_ns + self._delay_ns
        self._look_from_ns = now_ns if self.waits_for_socket else now_ns + self._delay_ns // 2

    def receive(self, now_ns: int) -> Datagram | None:
        """As of `ArrivalLine`."""
        if self._lent is not None:
            self._spare.append(self._lent)
            self._lent = None
        if not self._waiting or self._waiting[0][0] > now_ns:
            return None
        _, datagram, self._lent = self._waiting.pop(0)
        return datagram

    @property
    def next_due_ns(self) -> int:
        """As of `ArrivalLine`."""
        return min(self._waiting[0][0], self._unread_from_ns) if self._waiting else self._unread_from_ns

    def last_due_ns(self, until_ns: int) -> int:
        """As of `ArrivalLine`."""
        last_ns = until_ns
        for due_ns, _, _ in self._waiting:
            if due_ns > until_ns:
                break
            last_ns = due_ns
        return last_ns
