"""Which few broken things explain the losses best: greedy maximum likelihood. Pure.

Each packet is lost by each broken thing that it crosses with that thing's own chance, and by chance alone with a small
one. Of all suspects the one that explains most joins the broken ones, until none explains enough; then each has to show
that it is still needed beside the others. Two rules keep false ones out: a suspect that packets cross well is none (the
device rule of NetBouncer), and nothing is decided on losses so new that clean packets cannot have spoken yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import NamedTuple

from mrc_testbed.testbed.mapper.evidence import EvidenceWindow, Observation
from mrc_testbed.testbed.mapper.suspects import Elements, Suspect, SuspectKind, SuspectTable

NOISE = 0.001
"""The chance of a packet to be lost, or taken for lost, though nothing is broken."""
LEAST_LOSS = 0.01
MOST_LOSS = 0.999
"""Losses of a broken thing, as far as they are told apart."""
DEAD = 0.9
"""What loses more is dead."""
ALPHA = 1e-4
"""The chance that we allow a false accusation, for each decision."""
WHOLE = log(20)
"""How much more a whole switch or host must explain than a link: cables and ports are what breaks."""
SURE = 0.95
"""How sure an accusation must be: else more evidence is waited for."""
_STARTS = 3
_FITS = 8
"""Rounds of fitting one loss; more change nothing that matters."""
_TOO_WELL = log(100)
"""By how much a way may speak against a suspect, as a logarithm."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A suspect that is needed to explain the losses. `loss`: the share of packets that it loses; `gain`: by how much
    the evidence is likelier with it, as a natural logarithm; `onset_ns`, `last_ns`: from when to when losses were seen;
    `lost`, `arrived`: packets that have crossed it since the first; `alike`: suspects that the same packets cross, so
    that it could as well be one of those; `sure`: the chance that it is one of all these, if it is one thing."""

    suspect: Suspect
    loss: float
    gain: float
    onset_ns: int
    last_ns: int
    lost: int
    arrived: float
    alike: frozenset[Suspect]
    sure: float


@dataclass(slots=True)
class _Fit:
    """How well a suspect explains losses that the others leave. `ripe`: clean packets have had time to speak."""

    suspect: Suspect
    loss: float
    gain: float
    onset_ns: int
    arrived: float
    rows: list[int]
    ripe: bool

    @property
    def order(self) -> tuple[float, float, int, str]:
        """The best one first; of equals the one that fewer packets cross, then the smaller thing."""
        return -round(self.gain, 9), self.arrived, len(self.suspect.elements), str(self.suspect)


class KnownBroken(NamedTuple):
    """What is taken for broken, and what share of packets it loses. `until_ns` None: it still is. Since when is left
    open: it may have lost packets before that was seen."""

    suspect: Suspect
    loss: float
    until_ns: int | None = None


def gate_of(table: SuspectTable, alpha: float = ALPHA) -> float:
    """How much a suspect must explain: as many as there are suspects, it must be likelier than chance by 1 / alpha."""
    return log(table.components) + log(1 / alpha)


class Locator:
    """Finds what is broken in a stretch of evidence."""

    def __init__(
        self, table: SuspectTable, settle_ns: int, noise: float = NOISE, alpha: float = ALPHA, sure: float = SURE
    ) -> None:
        """`settle_ns`: how old losses must be before they show something dead; twice as old for what loses a part."""
        self.table, self.settle_ns, self.noise, self._sure = table, settle_ns, noise, sure
        self.gate = gate_of(table, alpha)

    def locate(
        self, window: EvidenceWindow, since_ns: int, now_ns: int, known: Sequence[KnownBroken] = ()
    ) -> list[Blame]:
        """What is to blame for losses that left after `since_ns`, beside what is `known` to be broken; the surest
        first."""
        rows = [row for row in window.lossy if row.end_ns > since_ns]
        if not rows:
            return []
        found = _Search(self, window, rows, now_ns, known).run()
        return [blame for blame in found if blame.sure >= self._sure]


class _Search:
    """One search: the lossy rows, and what is taken for broken so far."""

    def __init__(
        self,
        locator: Locator,
        window: EvidenceWindow,
        rows: list[Observation],
        now_ns: int,
        known: Sequence[KnownBroken],
    ) -> None:
        self._window, self._rows, self._now_ns, self._known = window, rows, now_ns, known
        self._settle_ns, self._noise, self._gate = locator.settle_ns, locator.noise, locator.gate
        self._standing = {one.suspect for one in known if one.until_ns is None}
        self._times: dict[Suspect, dict[int, int]] = {}
        """By suspect: the rows that cross it, and how often each does."""
        for number, row in enumerate(rows):
            for element in row.route:
                for suspect in locator.table.touching[element]:
                    times = self._times.setdefault(suspect, {})
                    times[number] = times.get(number, 0) + 1
        self._found: list[_Fit] = []
        self._clean: dict[tuple[Suspect, int], int] = {}

    def run(self) -> list[Blame]:
        """Begin with each of the best few in turn, and keep the answer that explains most."""
        answers = []
        for first in self._best(_STARTS):
            self._found = [first]
            self._complete()
            answers.append((self._worth(), self._found))
        self._found = max(answers, key=lambda answer: answer[0], default=(0.0, []))[1]
        return [self._blame(fit) for fit in sorted(self._found, key=lambda fit: fit.order)]

    def _complete(self) -> None:
        """Add suspects while one explains enough, drop those that the others make needless, and improve by swaps."""
        while best := self._best(1):
            self._found.append(best[0])
        self._drop_needless()
        self._swap()

    def _worth(self) -> float:
        """By how much all that was found makes the evidence likelier, less the gate for each."""
        losses = sum(row.lost * log(share) for row, share in zip(self._rows, self._explained(), strict=True))
        prices = (self._gate + _rarity(fit.suspect) for fit in self._found)
        return losses + sum(fit.arrived * log(1 - fit.loss) for fit in self._found) - sum(prices)

    # --- how well a suspect explains the rows ---

    def _explained(self, without: Suspect | None = None) -> list[float]:
        """The chance of each row's packets to be lost by what is taken for broken."""
        passes = [(1 - self._noise) * (1 - row.congested) for row in self._rows]
        for known in self._known:
            for number, times in self._times.get(known.suspect, {}).items():
                if known.until_ns is None or self._rows[number].begin_ns <= known.until_ns:
                    passes[number] *= (1 - known.loss) ** times
        for fit in self._found:
            if fit.suspect is not without:
                for number, times in self._times[fit.suspect].items():
                    if self._rows[number].end_ns > fit.onset_ns:
                        passes[number] *= (1 - fit.loss) ** times
        return [1 - share for share in passes]

    def _fit(self, suspect: Suspect, explained: list[float]) -> _Fit | None:
        """Its loss and gain, from the first of its losses on that are more than is explained; None where none are."""
        rows = self._times[suspect]
        open_rows = [n for n in rows if self._rows[n].lost > 2 * explained[n] * self._rows[n].sent]
        if not open_rows:
            return None
        onset_ns = min(self._rows[number].onset_ns for number in open_rows)
        mine = {number: times for number, times in rows.items() if self._rows[number].end_ns >= onset_ns}
        arrived = self._arrived(suspect, onset_ns, mine)
        lost = Counter[tuple[float, int]]()
        """By how much of it is explained, and how often those packets crossed the suspect."""
        for number, times in mine.items():
            lost[explained[number], times] += self._rows[number].lost
        loss = self._loss(lost, arrived)
        gain = arrived * log(1 - loss) - _rarity(suspect)
        for (base, times), count in lost.items():
            gain += count * log((1 - (1 - base) * (1 - loss) ** times) / base)
        wait_ns = self._settle_ns * (1 if loss >= DEAD else 2)
        return _Fit(suspect, loss, gain, onset_ns, arrived, open_rows, onset_ns + wait_ns <= self._now_ns)

    def _arrived(self, suspect: Suspect, onset_ns: int, rows: dict[int, int]) -> float:
        """How often a packet crossed it since then and was not lost."""
        key = suspect, onset_ns
        if key not in self._clean:
            self._clean[key] = sum(self._window.clean_since(element, onset_ns) for element in suspect.elements)
        return self._clean[key] + sum(times * self._rows[n].arrived_since(onset_ns) for n, times in rows.items())

    def _loss(self, lost: Counter[tuple[float, int]], arrived: float) -> float:
        """The share of packets that it loses, where other things lose some too: expectation, then maximisation."""
        loss = _clipped(lost.total() / (lost.total() + arrived))
        if all(base <= 2 * self._noise for base, _ in lost):
            return loss
        for _ in range(_FITS):
            own = sum(n * loss / (1 - (1 - base) * (1 - loss) ** times) for (base, times), n in lost.items())
            loss = _clipped(own / (own + arrived))
        return loss

    # --- the search ---

    def _best(self, most: int) -> list[_Fit]:
        """The suspects that explain most of what is unexplained, if it is enough."""
        explained = self._explained()
        taken = {fit.suspect for fit in self._found} | self._standing
        fits = (self._fit(suspect, explained) for suspect in self._times if suspect not in taken)
        waiting: set[int] = set()
        """Losses whose best suspect is not ripe: nothing else is accused of them meanwhile."""
        found: list[_Fit] = []
        for fit in sorted((fit for fit in fits if fit and fit.gain >= self._gate), key=lambda fit: fit.order):
            if len(found) < most and waiting.isdisjoint(fit.rows) and not self._too_well(fit):
                if fit.ripe:
                    found.append(fit)
                else:
                    waiting.update(fit.rows)
        return found

    def _drop_needless(self) -> None:
        """Drop what the others explain by now, the weakest first, and fit the rest again."""
        while self._found:
            again = [self._fit_among_others(fit) for fit in self._found]
            weakest = min(range(len(again)), key=lambda number: again[number].gain)
            if again[weakest].gain >= self._gate:
                self._found = again
                return
            del self._found[weakest]

    def _fit_among_others(self, fit: _Fit) -> _Fit:
        """The same suspect, as far as it is needed beside the others; with no gain where it is not."""
        again = self._fit(fit.suspect, self._explained(without=fit.suspect))
        return again or _Fit(fit.suspect, fit.loss, 0.0, fit.onset_ns, fit.arrived, fit.rows, fit.ripe)

    def _swap(self) -> None:
        """Put another suspect in the place of one, where it explains more beside the others."""
        for number, fit in enumerate(self._found):
            others = {one.suspect for one in self._found} | self._standing
            explained = self._explained(without=fit.suspect)
            fits = (self._fit(suspect, explained) for suspect in self._times if suspect not in others)
            better = [one for one in fits if one and one.ripe and one.gain > fit.gain + 1e-6]
            for one in sorted(better, key=lambda one: one.order):
                if not self._too_well(one):
                    self._found[number] = one
                    break

    def _too_well(self, fit: _Fit) -> bool:
        """Do packets on some ways cross it better than its loss allows? By the deviance of those ways that lost too
        little; of each way that is right, chance alone gives a quarter to a third."""
        sent: dict[Elements, float] = {}
        lost: dict[Elements, float] = {}
        for row in self._window.rows_since(fit.onset_ns):
            if not fit.suspect.elements.isdisjoint(row.route):
                sent[row.route] = sent.get(row.route, 0.0) + row.lost + row.arrived_since(fit.onset_ns)
                lost[row.route] = lost.get(row.route, 0.0) + row.lost
        passes = {way: (1 - fit.loss) ** sum(e in fit.suspect.elements for e in way) for way in sent}
        short = [
            _deviance(lost[way], sent[way], 1 - passes[way])
            for way in sent
            if lost[way] < sent[way] * (1 - passes[way])
        ]
        return sum(short) > _TOO_WELL + len(short) / 3 + 2 * sqrt(len(short))

    # --- the answer ---

    def _blame(self, fit: _Fit) -> Blame:
        explained = self._explained(without=fit.suspect)
        taken = {one.suspect for one in self._found if one is not fit} | self._standing
        rivals = [one for other in self._times if other not in taken and (one := self._fit(other, explained))]
        same = self._alike(fit, [rival.suspect for rival in rivals])
        weights = {one.suspect: exp(min(one.gain - fit.gain, 0.0)) for one in rivals}
        weights[fit.suspect] = 1.0
        names = {fit.suspect.name, *(one.name for one in same)}
        sure = sum(weight for one, weight in weights.items() if one.name in names)
        rows = [self._rows[number] for number in fit.rows]
        lost, last_ns = sum(row.lost for row in rows), max(row.end_ns for row in rows)
        times = fit.onset_ns, last_ns
        return Blame(fit.suspect, fit.loss, fit.gain, *times, lost, fit.arrived, same, sure / sum(weights.values()))

    def _alike(self, fit: _Fit, others: Iterable[Suspect]) -> frozenset[Suspect]:
        """Of these the suspects that the same packets cross; of links also the one that loses both ways."""
        ways = {row.route for row in self._window.rows_since(fit.onset_ns)} | {
            self._rows[number].route for number in fit.rows
        }
        mine = _crossing(ways, fit.suspect)
        return frozenset(one for one in others if one != fit.suspect and _crossing(ways, one) == mine)


def _rarity(suspect: Suspect) -> float:
    return 0.0 if suspect.kind is SuspectKind.LINK else WHOLE


def _crossing(ways: Collection[tuple[int, ...]], suspect: Suspect) -> set[tuple[int, ...]]:
    return {way for way in ways if not suspect.elements.isdisjoint(way)}


def _clipped(loss: float) -> float:
    return min(max(loss, LEAST_LOSS), MOST_LOSS)


def _deviance(lost: float, sent: float, loss: float) -> float:
    """How much likelier its own share of losses is than `loss`, as a logarithm."""
    own = lost / sent
    found = (sent - lost) * log((1 - own) / (1 - loss))
    return found + (lost * log(own / loss) if lost else 0.0)
