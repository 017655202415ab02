"""The course of a map again: what is accused, cleared and denied, period by period, from all rows ever told. What the
locator says of a stretch of evidence is taken as it is: tests/oracles/accusations.py judges that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log

from mrc_testbed.testbed.mapper.evidence import EvidenceWindow, Observation
from mrc_testbed.testbed.mapper.locate import Blame, KnownBroken, Locator
from mrc_testbed.testbed.mapper.suspects import Suspect, SuspectTable

SCALES = (4, 16, 64)
LATE_PERIODS, STALLED_PERIODS = 4, 3
STRONG = log(100)
Z = 1.645
Line = tuple[int, str, str, float, int, int]
"""Time, action, name, share of losses, first and last loss."""


def least_share(lost: float, sent: float) -> float:
    """The share from which these counts are 1.645 standard deviations away, from below; between half of a percent and
    0.999."""
    low, high, seen = 0.0, lost / sent, lost / sent
    for _ in range(80):
        middle = (low + high) / 2
        far = seen - middle > Z * (middle * (1 - middle) / sent) ** 0.5
        low, high = (middle, high) if far else (low, middle)
    return min(max(low, 0.005), 0.999)


@dataclass
class Standing:
    """An accusation that holds."""

    suspect: Suspect
    since_ns: int
    last_ns: int
    lost: float
    arrived: float
    later: float = 0.0
    against: float = 0.0

    @property
    def loss(self) -> float:
        return self.lost / (self.lost + self.arrived)

    def good(self, packets: float) -> None:
        """Packets that arrived speak against it."""
        self.later += packets
        self.against += packets * -log(1 - least_share(self.lost, self.lost + self.arrived))

    def bad(self, row: Observation, times: int, noise: float) -> None:
        """Lost ones speak for it, and what arrived before them is part of its share."""
        likelier = least_share(self.lost, self.lost + self.arrived) * times / max(noise, row.congested)
        self.against = max(0.0, self.against - row.lost * log(1 + likelier))
        self.last_ns = max(self.last_ns, row.end_ns)
        self.lost, self.arrived, self.later = self.lost + row.lost, self.arrived + self.later, 0.0


@dataclass
class Course:
    """A map as it goes on. `late`, `stalled`: rows that do not count."""

    table: SuspectTable
    period_ns: int
    noise: float
    alpha: float
    settle: int
    late: int = 0
    stalled: int = 0
    lines: list[Line] = field(default_factory=list)
    standing: list[Standing] = field(default_factory=list)
    _past: list[KnownBroken] = field(default_factory=list)
    _turns: list[tuple[int, Sequence[Observation]]] = field(default_factory=list)
    _silent: Counter[str] = field(default_factory=Counter)

    def turn(self, now_ns: int, rows: Sequence[Observation]) -> None:
        """A period more."""
        counted = self._counted(now_ns, rows)
        self._turns.append((now_ns, counted))
        self._hear(now_ns, counted)
        locator = Locator(self.table, self.settle * self.period_ns, self.noise, self.alpha)
        for scale in SCALES:
            if len(self._turns) % max(1, scale // 8) == 0:
                since_ns = now_ns - scale * self.period_ns
                for blame in locator.locate(self._window(), since_ns, now_ns, self._known(now_ns)):
                    self._accuse(now_ns, blame)

    def _counted(self, now_ns: int, rows: Sequence[Observation]) -> list[Observation]:
        early = [row for row in rows if row.end_ns > now_ns - LATE_PERIODS * self.period_ns]
        self.late += len(rows) - len(early)
        aside = set()
        for host in {row.by for row in early if row.sent}:
            mine = [row for row in early if row.by == host and row.sent]
            dumb = sum(row.lost for row in mine) >= sum(row.sent for row in mine) and len({r.route for r in mine}) > 1
            self._silent[host] = self._silent[host] + 1 if dumb else 0
            if 1 <= self._silent[host] < STALLED_PERIODS:
                aside.add(host)
        kept = [row for row in early if row.by not in aside]
        self.stalled += len(early) - len(kept)
        return kept

    def _hear(self, now_ns: int, rows: Sequence[Observation]) -> None:
        for row in rows:
            met = [one for one in self.standing if self._times(one.suspect, row)]
            for one in met:
                if row.begin_ns >= one.since_ns:
                    times = self._times(one.suspect, row)
                    one.good(max(0, row.sent - row.lost) * times)
                    if row.lost and len(met) == 1:
                        one.bad(row, times, self.noise)
        things = {one.name for one in self.table.all}
        for one in list(self.standing):
            if one.against >= log(len(things) / self.alpha):
                self._dismiss(now_ns, one)

    def _dismiss(self, now_ns: int, one: Standing) -> None:
        self.standing.remove(one)
        self._past.append(KnownBroken(one.suspect, one.loss, one.last_ns))
        self.lines.append((now_ns, "clear", one.suspect.name, one.loss, one.since_ns, one.last_ns))

    def _accuse(self, now_ns: int, blame: Blame) -> None:
        suspect = blame.suspect
        later = sum(self._window().clean_since(element, blame.last_ns) for element in suspect.elements)
        line = suspect.name, blame.loss, blame.onset_ns, blame.last_ns
        if later * -log(1 - blame.loss) > STRONG:
            self._past.append(KnownBroken(suspect, blame.loss, blame.last_ns))
            self.lines.append((now_ns, "over", *line))
            return
        links = self.table.links_of(suspect)
        for one in list(self.standing):
            if self.table.links_of(one.suspect) <= links and one.suspect is not suspect:
                self._dismiss(now_ns, one)
        one = Standing(suspect, blame.onset_ns, blame.last_ns, blame.lost, blame.arrived)
        one.good(later)
        self.standing.append(one)
        self.lines.append((now_ns, "accuse", *line))

    def _known(self, now_ns: int) -> list[KnownBroken]:
        kept = [one for one in self._past if one.until_ns and one.until_ns > now_ns - SCALES[-1] * self.period_ns]
        return [*kept, *(KnownBroken(one.suspect, one.loss) for one in self.standing)]

    def _window(self) -> EvidenceWindow:
        window = EvidenceWindow(self.table, self.period_ns, SCALES[-1])
        for now_ns, rows in self._turns:
            window.add(rows, now_ns)
        return window

    @staticmethod
    def _times(suspect: Suspect, row: Observation) -> int:
        return sum(element in suspect.elements for element in row.route)
