"""The delay line: a received packet is handled a fixed time after the kernel took it from the wire.

It stands in for netem where the kernel has none. First in, first out, and the queue is the kernel's own: packets wait
in the socket buffer, at most one of them has been read ahead, to know when it is due. So nothing is copied, and the
daemon sleeps instead of waking for each arrival: what is not in an empty buffer now cannot be due before `delay_ns`
from now.
"""

from __future__ import annotations

from collections.abc import Callable

from hosts.udp import ARRIVAL, Datagram


class DelayLine:
    """`receive(now_ns)` yields packets that count as arrived `delay_ns` after the wire; here they wait until then."""

    def __init__(self, receive: Callable[[int], Datagram | None], delay_ns: int) -> None:
        self._receive = receive
        self._delay_ns = delay_ns
        self._ahead: Datagram | None = None
        self.next_due_ns = 0

    def receive(self, now_ns: int) -> Datagram | None:
        """The next packet that is due; None when there is none yet.

        None sets `next_due_ns`, before which no other packet will be due.
        """
        datagram = self._ahead or self._receive(now_ns)
        if datagram is None:
            self.next_due_ns = now_ns + self._delay_ns
        elif datagram[ARRIVAL] > now_ns:
            self._ahead = datagram
            self.next_due_ns = datagram[ARRIVAL]
        else:
            self._ahead = None
            return datagram
        return None
