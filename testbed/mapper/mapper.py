"""The mapper: takes what was seen, period by period, and says what is broken from when to when. Pure.

It decides on evidence of periods that are over: each period on the last 4, every 2 on the last 16, and every 8 on the
last 64. What is dead shows in the first, what loses little in the last. An accusation stays until packets that
crossed the accused speak against it as strongly as losses had to speak for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log, sqrt

from mrc_testbed.testbed.mapper.evidence import EvidenceWindow, Observation, Witness
from mrc_testbed.testbed.mapper.locate import ALPHA, LEAST_LOSS, MOST_LOSS, NOISE, Blame, KnownBroken, Locator
from mrc_testbed.testbed.mapper.suspects import Direction, Suspect, SuspectTable

SCALES = (4, 16, 64)
"""Lengths of the stretches of evidence, in periods."""
SETTLE = 1
"""Of probes: each is told in the period after its own."""
STALLED = 3
"""Periods in which a host lost all that it sent, before its word counts: it may only have been stopped itself."""
LATE = 4
"""Periods after which evidence is too late to count."""
_PART = 8
"""A stretch is looked at each time that an eighth of it is new, or a period."""
_OVER = log(100)
"""How strongly packets since the last loss must speak against something that would be accused only now."""
_Z = 1.645
"""Standard deviations that one in twenty exceeds on one side."""


class MapAction(StrEnum):
    """What the mapper says of a suspect."""

    ACCUSE = "accuse"
    CLEAR = "clear"
    OVER = "over"
    """It was broken, and is well again: that was seen only now."""


@dataclass(frozen=True, slots=True)
class MapChange:
    """Something is taken for broken at `t_ns`, or not any more.

    `direction`: of a link that loses one way; None: both, or nobody can tell. `since_ns`, `last_ns`: the first loss
    that it explains, and the last one so far. `alike`: names of what it could as well be; `sure`: the chance that it is
    one of all these. `witnesses`: by what it was seen; `seers`: hosts that lost packets there lately.
    """

    t_ns: int
    action: MapAction
    name: str
    direction: Direction | None
    loss: float
    gain: float
    since_ns: int
    last_ns: int
    alike: tuple[str, ...]
    sure: float
    witnesses: tuple[Witness, ...]
    seers: tuple[str, ...]


@dataclass(slots=True)
class _Accused:
    """An accusation that holds. `lost`, `arrived`: packets that crossed it until its last loss; `since`: those that
    arrived later. `well`: how strongly these speak against it, as a logarithm."""

    suspect: Suspect
    change: MapChange
    lost: int
    arrived: float
    clean: float = 0.0
    well: float = 0.0
    until_ns: int = 0

    @property
    def loss(self) -> float:
        """The share of packets that it loses."""
        return self.lost / (self.lost + self.arrived)

    def arrive(self, packets: int) -> None:
        """This number of packets crossed it and were not lost."""
        self.clean += packets
        self.well -= packets * log(1 - _least(self.lost, self.lost + self.arrived))

    def hear(self, row: Observation, noise: float, alone: bool) -> None:
        """Packets crossed it: each that arrived speaks for it, each that was lost against it, if it is `alone` to
        blame."""
        times = sum(element in self.suspect.elements for element in row.route)
        self.arrive(max(row.sent - row.lost, 0) * times)
        if row.lost and alone:
            self.until_ns = max(self.until_ns, row.end_ns)
            least = _least(self.lost, self.lost + self.arrived)
            self.well = max(self.well - row.lost * log(1 + least * times / max(noise, row.congested)), 0.0)
            self.lost += row.lost
            self.arrived, self.clean = self.arrived + self.clean, 0.0


def _least(lost: float, sent: float) -> float:
    """The least share of losses that these counts allow: Wilson's lower bound, one in twenty."""
    share, spread = lost / sent, _Z**2 / sent
    middle = share + spread / 2 - _Z * sqrt(share * (1 - share) / sent + _Z**2 / (4 * sent**2))
    return min(max(middle / (1 + spread), LEAST_LOSS / 2), MOST_LOSS)


class PathMapper:
    """Says what is broken. `late`, `stalled`: rows of evidence that were left out, because they came too late, or from
    a host that lost everything."""

    def __init__(
        self,
        table: SuspectTable,
        period_ns: int,
        settle: int = SETTLE,
        noise: float = NOISE,
        alpha: float = ALPHA,
    ) -> None:
        """`settle`: periods that losses are old before they show something dead; twice as many for what loses a part.
        In that time all that was sent after the first loss must have been told."""
        self._table, self._period_ns, self._noise = table, period_ns, noise
        self._window = EvidenceWindow(table, period_ns, SCALES[-1])
        self._locator = Locator(table, settle * period_ns, noise, alpha)
        self._accused: dict[Suspect, _Accused] = {}
        self._past: list[KnownBroken] = []
        self._turns = 0
        self._silent: dict[str, int] = {}
        """By host: periods in a row in which it lost all that it sent."""
        self.late = self.stalled = 0

    @property
    def accused(self) -> Sequence[MapChange]:
        """The accusations that hold, the oldest first, each with its losses so far."""
        return [
            replace(one.change, loss=one.loss, last_ns=max(one.until_ns, one.change.last_ns))
            for one in self._accused.values()
        ]

    def turn(self, now_ns: int, rows: Iterable[Observation]) -> list[MapChange]:
        """A period is over, with what was seen in it and not told before; returns what changes by it."""
        believed = self._believed(now_ns, rows)
        self._window.add(believed, now_ns)
        return [*self._clear(now_ns, believed), *self._accuse(now_ns)]

    def _believed(self, now_ns: int, rows: Iterable[Observation]) -> list[Observation]:
        """Without rows that are late, and without those of hosts that lose everything all of a sudden."""
        in_time: list[Observation] = []
        for row in rows:
            if row.end_ns <= now_ns - LATE * self._period_ns:
                self.late += 1
            else:
                in_time.append(row)
        put_aside = self._stopped(in_time)
        self.stalled += sum(row.by in put_aside for row in in_time)
        return [row for row in in_time if row.by not in put_aside]

    def _stopped(self, rows: Sequence[Observation]) -> set[str]:
        """Hosts that lost all of what they sent, on several ways, and not for STALLED periods yet."""
        sent: dict[str, int] = {}
        lost: dict[str, int] = {}
        ways: dict[str, set[object]] = {}
        for row in rows:
            if row.sent:
                sent[row.by] = sent.get(row.by, 0) + row.sent
                lost[row.by] = lost.get(row.by, 0) + row.lost
                ways.setdefault(row.by, set()).add(row.route)
        for host in sent:
            silent = lost[host] >= sent[host] and len(ways[host]) > 1
            self._silent[host] = self._silent.get(host, 0) + 1 if silent else 0
        return {host for host in sent if 0 < self._silent[host] < STALLED}

    # --- accusations that hold ---

    def _clear(self, now_ns: int, rows: Sequence[Observation]) -> list[MapChange]:
        """Let packets speak of the accused."""
        standing = list(self._accused.values())
        for row in rows if standing else ():
            crossed = [one for one in standing if not one.suspect.elements.isdisjoint(row.route)]
            for one in crossed:
                if row.begin_ns >= one.change.since_ns:
                    one.hear(row, self._noise, alone=len(crossed) == 1)
        return [self._dismiss(one, now_ns) for one in standing if one.well >= self._locator.gate]

    def _dismiss(self, accused: _Accused, now_ns: int) -> MapChange:
        del self._accused[accused.suspect]
        self._past.append(KnownBroken(accused.suspect, accused.loss, accused.until_ns))
        last_ns = accused.until_ns
        return replace(accused.change, t_ns=now_ns, action=MapAction.CLEAR, loss=accused.loss, last_ns=last_ns)

    # --- new ones ---

    def _accuse(self, now_ns: int) -> list[MapChange]:
        changes: list[MapChange] = []
        self._turns += 1
        for scale in SCALES:
            if self._turns % max(scale // _PART, 1):
                continue
            since_ns = now_ns - scale * self._period_ns
            for blame in self._locator.locate(self._window, since_ns, now_ns, self._known(now_ns)):
                changes += self._hold(blame, now_ns)
        return changes

    def _hold(self, blame: Blame, now_ns: int) -> list[MapChange]:
        """Accuse it, unless packets since its last loss have cleared it already."""
        suspect, change = blame.suspect, self._change(blame, now_ns)
        clean = sum(self._window.clean_since(element, blame.last_ns) for element in suspect.elements)
        if -clean * log(1 - blame.loss) > _OVER:
            self._past.append(KnownBroken(suspect, blame.loss, blame.last_ns))
            return [replace(change, action=MapAction.OVER)]
        accused = _Accused(suspect, change, blame.lost, blame.arrived, until_ns=blame.last_ns)
        accused.arrive(clean)
        parts = [self._dismiss(part, now_ns) for part in self._parts(suspect)]
        self._accused[suspect] = accused
        return [*parts, change]

    def _known(self, now_ns: int) -> list[KnownBroken]:
        """What is accused, and what was until lately: its losses are still in the evidence."""
        oldest_ns = now_ns - SCALES[-1] * self._period_ns
        self._past = [one for one in self._past if (one.until_ns or 0) > oldest_ns]
        standing = (KnownBroken(one.suspect, one.loss) for one in self._accused.values())
        return [*self._past, *standing]

    def _parts(self, whole: Suspect) -> list[_Accused]:
        """Of the accused those that are a part of this one: one direction of a link, or a link of a switch."""
        links = self._table.links_of(whole)
        others = (one for one in self._accused.values() if one.suspect is not whole)
        return [one for one in others if self._table.links_of(one.suspect) <= links]

    def _change(self, blame: Blame, now_ns: int) -> MapChange:
        suspect = blame.suspect
        alike = sorted({one.name for one in blame.alike} - {suspect.name})
        both = any(one.name == suspect.name for one in blame.alike)
        rows = [row for row in self._window.lossy if not suspect.elements.isdisjoint(row.route)]
        witnesses, seers = sorted({row.witness for row in rows}), sorted({row.by for row in rows})
        return MapChange(
            now_ns,
            MapAction.ACCUSE,
            suspect.name,
            None if both else suspect.direction,
            blame.loss,
            blame.gain,
            blame.onset_ns,
            blame.last_ns,
            tuple(alike),
            blame.sure,
            tuple(witnesses),
            tuple(seers),
        )
