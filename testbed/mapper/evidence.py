"""What was seen: packets that took a known way, how many of them were lost, and when. Pure.

Old evidence fades: a limited time is kept, in bins, so that what a decision costs follows the losses and not the
packets.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from mrc_testbed.testbed.mapper.suspects import Elements, SuspectTable

BINS_A_PERIOD = 4


class Witness(StrEnum):
    """Who has seen it."""

    ENDPOINTS = "endpoints"
    PROBES = "probes"


@dataclass(frozen=True, slots=True)
class Observation:
    """`sent` packets left between `begin_ns` and `end_ns` on one way, and `lost` of them did not arrive.

    `first_lost_ns`: when the first lost one left; 0: not known. `by`: the host that tells it. `congested`: the chance
    of each to be lost to full queues, or taken for lost because of them.
    """

    route: Elements
    begin_ns: int
    end_ns: int
    sent: int
    lost: int
    by: str
    first_lost_ns: int = 0
    witness: Witness = Witness.ENDPOINTS
    congested: float = 0.0

    @property
    def onset_ns(self) -> int:
        """The latest moment at which something on its way was broken, if its loss has a cause."""
        return self.first_lost_ns or self.end_ns

    def arrived_since(self, onset_ns: int) -> float:
        """How many of those that arrived left after `onset_ns`; where it lies inside, by even spacing."""
        arrived = max(self.sent - self.lost, 0)
        if self.begin_ns >= onset_ns:
            return arrived
        return arrived * max(self.end_ns - onset_ns, 0) / (self.end_ns - self.begin_ns)


class EvidenceWindow:
    """The evidence of the last periods."""

    def __init__(self, table: SuspectTable, period_ns: int, periods: int) -> None:
        self._grain_ns = max(period_ns // BINS_A_PERIOD, 1)
        self._bins = periods * BINS_A_PERIOD
        self._arrived = [array("q", bytes(8 * self._bins)) for _ in range(table.elements)]
        """By element and bin: packets of rows without a loss that began there."""
        self._slack_ns = period_ns
        """Rows come in the order of their ends, but for this much."""
        self._newest = 0
        """The newest bin, as a number that only grows."""
        self._rows: deque[Observation] = deque()
        """Those that are kept, by when they ended."""
        self.lossy: deque[Observation] = deque()
        """Of these, those that lost something."""

    def add(self, rows: Iterable[Observation], now_ns: int) -> None:
        """Rows of a period that has ended at `now_ns`."""
        self._turn_to(now_ns // self._grain_ns)
        for row in sorted(rows, key=lambda row: row.end_ns):
            if row.sent <= 0:
                continue
            self._rows.append(row)
            if row.lost:
                self.lossy.append(row)
            elif (number := row.begin_ns // self._grain_ns) > self._newest - self._bins:
                for element in row.route:
                    self._arrived[element][number % self._bins] += row.sent

    def _turn_to(self, newest: int) -> None:
        ahead = min(newest - self._newest, self._bins)
        for number in range(newest - ahead + 1, newest + 1):
            place = number % self._bins
            for counts in self._arrived:
                counts[place] = 0
        self._newest = max(newest, self._newest)
        oldest_ns = (self._newest - self._bins + 1) * self._grain_ns
        for kept in (self._rows, self.lossy):
            while kept and kept[0].end_ns <= oldest_ns:
                kept.popleft()

    def clean_since(self, element: int, onset_ns: int) -> int:
        """Packets that crossed an element, of rows without a loss which began after `onset_ns`."""
        first = max(-(-onset_ns // self._grain_ns), self._newest - self._bins + 1)
        if first > self._newest:
            return 0
        counts, begin, end = self._arrived[element], first % self._bins, self._newest % self._bins + 1
        return sum(counts[begin:end]) if begin < end else sum(counts[begin:]) + sum(counts[:end])

    def rows_since(self, onset_ns: int) -> Iterator[Observation]:
        """Rows without a loss that began after `onset_ns`, and all with one that ended after it; the newest first."""
        for row in reversed(self._rows):
            if row.end_ns <= onset_ns - self._slack_ns:
                return
            if row.begin_ns >= onset_ns or (row.lost and row.end_ns > onset_ns):
                yield row
