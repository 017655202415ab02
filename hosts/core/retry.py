"""How long to wait for an acknowledgement, and how often (digest 3.8, 5.4)."""

from __future__ import annotations


class RetryCounter:
    """Tries in a row: `linear` of them at a constant interval, then `exponential` at a doubling one.

    An interval in which nothing was acknowledged is a try, whether the peer said nothing or only ever refused.
    """

    __slots__ = ("_exponential", "_linear", "_refused_ns", "progress_ns", "tries")

    def __init__(self, linear: int, exponential: int) -> None:
        self._linear = linear
        self._exponential = exponential
        self.tries = 0
        self._refused_ns: int | None = None
        """Since when the peer has only refused, None while it has not."""
        self.progress_ns = 0
        """When something new was last acknowledged."""

    def interval_ns(self, rto_ns: int) -> int:
        """The wait that belongs to the present try."""
        return rto_ns << max(self.tries - self._linear, 0)

    def refused(self, now_ns: int) -> None:
        """The peer refused a packet, and asks for it again."""
        if self._refused_ns is None:
            self._refused_ns = now_ns

    def refused_since(self, when_ns: int) -> bool:
        """Has the peer only refused since `when_ns` or longer, or since the last try?"""
        return self._refused_ns is not None and self._refused_ns <= when_ns

    def wait_from(self, when_ns: int) -> int:
        """When the present try began: at `when_ns`, or when the peer began to refuse if that was before."""
        return when_ns if self._refused_ns is None else min(when_ns, self._refused_ns)

    def timed_out(self, now_ns: int) -> bool:
        """Count one try; True when the QP has to give up."""
        if self._refused_ns is not None:
            self._refused_ns = now_ns
        self.tries += 1
        return self.tries > self._linear + self._exponential

    def progress(self, now_ns: int) -> None:
        """Something new was acknowledged."""
        self.tries = 0
        self._refused_ns = None
        self.progress_ns = now_ns
