"""How many packets arrive that their senders have taken for lost: they were only late. Pure.

A sender cannot know: it has sent them again by then. The receiver counts what arrives twice. On a plane that is slow
packets are late until others overtake them, and nearly all that is taken for lost there arrives. Something is wrong on
their way all the same; but where many are late, a few losses more say little of one link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from mrc_testbed.testbed.evidence.snapshots import Snapshot
from mrc_testbed.testbed.evidence.told_paths import PathCount

_Counted = deque[tuple[int, int]]
"""Times in ns, and how many then."""


class LatePackets:
    """By receiver what was sent there lately, and what arrived twice."""

    def __init__(self, keep_ns: int) -> None:
        """`keep_ns`: for how long a packet that was taken for lost may still arrive."""
        self._keep_ns = keep_ns
        self._counter: dict[str, int] = {}
        self._twice: dict[str, _Counted] = {}
        self._sent: dict[str, _Counted] = {}

    def take(self, shot: Snapshot, rows: Iterable[PathCount]) -> None:
        """What a host has counted, and what it has sent to each other one since the last time."""
        count = shot.counters.get("duplicates", 0)
        twice = count - self._counter.get(shot.host, count)
        self._counter[shot.host] = count
        self._add(self._twice, shot.host, shot.t_ns, max(twice, 0))
        for row in rows:
            self._add(self._sent, row.peer, shot.t_ns, row.sent)

    def _add(self, counts: dict[str, _Counted], host: str, t_ns: int, number: int) -> None:
        counted = counts.setdefault(host, deque())
        counted.append((t_ns, number))
        while counted[0][0] <= t_ns - self._keep_ns:
            counted.popleft()

    def share(self, host: str) -> float:
        """Of the packets that were sent to a host lately."""
        twice, sent = (sum(number for _, number in counts.get(host, ())) for counts in (self._twice, self._sent))
        return twice / sent if sent else 0.0
