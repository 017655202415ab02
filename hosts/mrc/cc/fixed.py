"""No congestion control: a window of 1.5 bandwidth-delay products; only trims, losses and the pacer slow down."""

from __future__ import annotations

from mrc_testbed.hosts.mrc.timing import Timing


class FixedWindow:
    """`window` follows T."""

    __slots__ = ("_timing", "window")

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.window = timing.window_bytes

    def begin(self) -> None:
        self.window = self._timing.window_bytes

    def on_sack(self, acked: int, rtt_ns: int | None, ecn: bool, under_way: int, now_ns: int) -> None:
        self.window = self._timing.window_bytes

    def on_trim(self, size: int, under_way: int, now_ns: int) -> None:
        pass

    def on_loss(self, size: int) -> None:
        pass

    def on_penalty(self, penalty: int, restore: bool, acked: int) -> None:
        pass
