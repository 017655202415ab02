"""Stalls: times in which a QP had work outstanding and none of it was acknowledged.

Every kind of endpoint keeps a `StallWatch` a QP and tells it three things: `posted` when there is something to deliver,
`progress` when the peer has acknowledged something new, `idle` when all is delivered. Without clock and sockets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mrc_testbed.hosts.common.events import StallEnded
from mrc_testbed.hosts.common.timers import NEVER

LEAST_STALL_NS = 20_000_000
"""A shorter silence says more about the machine than about the network, however small T is."""


def least_stall_ns(rtt_ns: int, swift: int = 1) -> int:
    """A silence is a stall when it lasts longer than this: two round trips T, or 20 ms. `swift`: how many times faster
    than daemons hosts are, so that the machine has no part in silences."""
    return max(2 * rtt_ns, LEAST_STALL_NS // swift)


class StallSink(Protocol):
    """Where stalls are put: the queue of an endpoint's events."""

    def append(self, event: StallEnded, /) -> None:
        """Take one more."""


class StallWatch:
    """The silence of one QP. `since_ns`: when something was last acknowledged, or when work was posted if that was
    later; NEVER while nothing is outstanding."""

    __slots__ = ("_least_ns", "_sink", "peer", "qpn", "since_ns")

    def __init__(self, qpn: int, peer: int, least_ns: int, sink: StallSink) -> None:
        self.qpn = qpn
        self.peer = peer
        self.since_ns = NEVER
        self._least_ns = least_ns
        self._sink = sink

    def posted(self, now_ns: int) -> None:
        """Something is to be delivered."""
        if self.since_ns == NEVER:
            self.since_ns = now_ns

    def progress(self, now_ns: int) -> None:
        """Something new was acknowledged at `now_ns`, and something is still outstanding unless `idle` follows."""
        if now_ns - self.since_ns > self._least_ns:
            self._sink.append(StallEnded(self.qpn, self.peer, self.since_ns, now_ns))
        self.since_ns = now_ns

    def idle(self) -> None:
        """All is delivered."""
        self.since_ns = NEVER

    def stalled(self, now_ns: int) -> bool:
        """Does a stall go on? That of a QP that has failed goes on for ever."""
        return now_ns - self.since_ns > self._least_ns


def stalled_since(watches: Iterable[StallWatch], now_ns: int) -> dict[int, int]:
    """When the stalls began that go on at `now_ns`, by QP number."""
    return {watch.qpn: watch.since_ns for watch in watches if watch.stalled(now_ns)}
