"""What the operations of a rank program share: QPs, the time, what has arrived, writes under way, reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from mrc_testbed.hosts.program_io import ProgramQps, Report

AGAIN = 0

Waits = Iterator[int | None]
"""What an operation yields: the time to go on at (`AGAIN`: at once), or None when only an input can help."""


class ProgramState:
    """One for each program. `grain_ns`: how long the stretches are that streams are reported for."""

    def __init__(self, transport: ProgramQps, grain_ns: int) -> None:
        self.transport = transport
        self.grain_ns = grain_ns
        self.now_ns = self.start_ns = 0
        self.reports: deque[Report] = deque()
        self._immediates: dict[str, deque[int]] = {}
        self._unwritten: dict[str, int] = {}

    def arrived(self, qp: str) -> deque[int]:
        """The immediates that came on a QP and that no operation has taken, the oldest first."""
        arrived = self._immediates.get(qp)
        if arrived is None:
            arrived = self._immediates[qp] = deque()
        return arrived

    def post(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        """Write into the region of the peer."""
        self._unwritten[qp] = self._unwritten.get(qp, 0) + 1
        self.transport.post_write(qp, data, remote_offset, immediate)

    def written(self, qp: str) -> None:
        """One of the writes on this QP is complete."""
        self._unwritten[qp] -= 1

    def outstanding(self, qp: str) -> int:
        """How many writes on a QP are not complete."""
        return self._unwritten.get(qp, 0)

    @property
    def idle(self) -> bool:
        """No write is under way."""
        return not any(self._unwritten.values())

    def until(self, at_ns: int) -> Waits:
        """Wait for a time."""
        while self.now_ns < at_ns:
            yield at_ns
