"""How long to wait for an acknowledgement, and how often (API; docs/protocol.md, "Loss and recovery")."""

from __future__ import annotations

from mrc_testbed.hosts.common.timers import NEVER

ENDLESS = 25
"""This number of exponential tries means tries without end (API: `exp_cnt`)."""
MOST_DOUBLINGS = 24
"""Of the interval: a timeout of a second lasts half a year then."""


class RetryCounter:
    """Tries in a row: `linear` of them at a constant interval, then `exponential` at a doubling one, which are endless
    where they are ENDLESS.

    A try is an interval in which nothing was acknowledged, whether the peer said nothing or only ever refused. All
    packets that expire within one interval are one try.
    """

    __slots__ = ("_exponential", "_linear", "_since_ns", "_tried_ns", "expired", "refused", "tries")

    def __init__(self, linear: int, exponential: int) -> None:
        self._linear = linear
        self._exponential = exponential
        self.tries = 0
        self._since_ns = 0
        """When the work began, something new was last acknowledged, or the last try ended."""
        self._tried_ns = -NEVER
        """When the last try ended, however much was acknowledged since."""
        self.expired = False
        """Has a packet expired since the last try or progress?"""
        self.refused = False
        """Has the peer refused one?"""

    def begin(self, now_ns: int) -> None:
        """There is something to deliver, after a time in which there was nothing."""
        self._since_ns = now_ns

    def progress(self, now_ns: int) -> None:
        """Something new was acknowledged."""
        self.tries = 0
        self._since_ns = now_ns
        self.expired = self.refused = False

    def ends_ns(self, rto_ns: int) -> int:
        """When the present try ends. A packet that has expired waited for itself, and the try ends with it, unless
        another ended less than an interval ago."""
        since_ns = self._tried_ns if self.expired else self._since_ns
        return since_ns + (rto_ns << min(max(self.tries - self._linear, 0), MOST_DOUBLINGS))

    def tried(self, now_ns: int) -> bool:
        """Count one try; True when the QP has to give up."""
        self.tries += 1
        self._since_ns = self._tried_ns = now_ns
        self.expired = self.refused = False
        return self._exponential < ENDLESS and self.tries > self._linear + self._exponential
