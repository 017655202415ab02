"""How long to wait for an acknowledgement, and how often (digest 3.8, 5.4)."""

from __future__ import annotations


class RetryCounter:
    """Timeouts in a row: `linear` of them at a constant interval, then `exponential` at a doubling one."""

    __slots__ = ("_exponential", "_linear", "progress_ns", "tries")

    def __init__(self, linear: int, exponential: int) -> None:
        self._linear = linear
        self._exponential = exponential
        self.tries = 0
        self.progress_ns = 0
        """When something new was last acknowledged."""

    def interval_ns(self, rto_ns: int) -> int:
        """The wait that belongs to the present try."""
        return rto_ns << max(self.tries - self._linear, 0)

    def timed_out(self) -> bool:
        """Count one timeout; True when the QP has to give up."""
        self.tries += 1
        return self.tries > self._linear + self._exponential

    def progress(self, now_ns: int) -> None:
        """Something new was acknowledged."""
        self.tries = 0
        self.progress_ns = now_ns
