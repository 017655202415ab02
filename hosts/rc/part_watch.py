"""The watch for stalls of one QP of several that carry one connection."""

from __future__ import annotations

from mrc_testbed.hosts.common.stalls import StallSink, StallWatch


class PartWatch(StallWatch):
    """Of one QP of a group: what it hears it tells the watch of the whole, which alone knows when all is delivered."""

    __slots__ = ("_whole",)

    def __init__(self, whole: StallWatch, sink: StallSink) -> None:
        super().__init__(whole.qpn, whole.peer, 0, sink)
        self._whole = whole

    def posted(self, now_ns: int) -> None:
        """As of the whole."""
        self._whole.posted(now_ns)

    def progress(self, now_ns: int) -> None:
        """As of the whole."""
        self._whole.progress(now_ns)

    def idle(self) -> None:
        """The other parts may not be."""
