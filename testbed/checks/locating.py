"""How good answers to "what is broken" were: the truth of a run against a stream of answers. Pure.

One scoring for all who answer: the mapper, a program, a student. An answer holds until the next one. What it names is
compared by links: a switch is all its links, and a name is as good as each that nobody can tell from it, in the
direction that the answer says, or in any if it says none. Links that no packet crossed are nobody's business. For a
moment after a heal an answer may still name what was broken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from mrc_testbed.testbed.checks.answers import Answer, AnswerState, Incident
from mrc_testbed.testbed.checks.broken import BrokenSpan
from mrc_testbed.testbed.checks.fabric_places import FabricPlaces
from mrc_testbed.testbed.checks.intervals import Interval, TimeSet
from mrc_testbed.testbed.mapper.suspects import Direction, Suspect

_S = 1e9


def f1_of(precision: float | None, recall: float | None) -> float | None:
    """The harmonic mean of both; None without both."""
    if precision is None or recall is None:
        return None
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


@dataclass(frozen=True, slots=True)
class FaultFound:
    """How one thing that was broken was found. `located_ns`: from when it was in place until all its links were named;
    None: never. `cleared_ns`: from the heal until nothing of it was named; None: never, or it broke again before.
    `what`, `direction`: whether these were right in the end; None: not said, or said of what is like it.
    `since_ns`: how far the time said was off.
    """

    span: BrokenSpan
    located_ns: int | None
    cleared_ns: int | None
    what: bool | None = None
    direction: bool | None = None
    since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Accusation:
    """A place that an answer named and the one before did not. `right`: it was broken; `p`: how sure the answer was."""

    t_ns: int
    name: str
    right: bool
    p: float


@dataclass(frozen=True, slots=True)
class LocatingScore:
    """Of all answers of a run. `faults`: those that an answer should have named; `beside`: those that it might.

    `broken_ns`, `told_ns`: how long something was broken, and how much of that time answers said so; `clean_ns`,
    `quiet_ns`: how long nothing was, and how much of that they did not say so; `alarms`: how often they began to then.
    """

    faults: tuple[FaultFound, ...]
    beside: tuple[FaultFound, ...]
    accusations: tuple[Accusation, ...]
    broken_ns: float
    told_ns: float
    clean_ns: float
    quiet_ns: float
    alarms: int

    @property
    def located_ns(self) -> list[float]:
        """Of each fault that was asked for; infinite for one that was not located."""
        return [inf if one.located_ns is None else one.located_ns for one in self.faults]

    @property
    def cleared_ns(self) -> list[float]:
        """Of each fault that was located and mended, and did not break again before."""
        return [one.cleared_ns for one in (*self.faults, *self.beside) if one.cleared_ns is not None]

    @property
    def falsely_accused(self) -> int:
        """Accusations of what was whole."""
        return sum(not one.right for one in self.accusations)

    @property
    def precision(self) -> float | None:
        """The part of the accusations that was right; None if there was none."""
        return 1 - self.falsely_accused / len(self.accusations) if self.accusations else None

    @property
    def recall(self) -> float | None:
        """The part of the faults that was located before the heal, or a moment later; None if none was asked for."""
        return sum(one.located_ns is not None for one in self.faults) / len(self.faults) if self.faults else None

    @property
    def f1(self) -> float | None:
        """Precision and recall in one: their harmonic mean; None without both."""
        return f1_of(self.precision, self.recall)

    @property
    def balanced_accuracy(self) -> float | None:
        """Whether: the mean of the parts of the broken and of the clean time in which that was said; None without."""
        parts = [part / whole for part, whole in self._times if whole]
        return fmean(parts) if parts else None

    @property
    def _times(self) -> tuple[tuple[float, float], ...]:
        return (self.told_ns, self.broken_ns), (self.quiet_ns, self.clean_ns)

    @property
    def alarms_an_hour(self) -> float | None:
        """False alarms by hour of clean time; None if there was no clean time."""
        return self.alarms * 3600 * _S / self.clean_ns if self.clean_ns else None

    @property
    def brier(self) -> float | None:
        """How sure: the mean square of how far the chance said of each accusation was off."""
        return fmean((one.p - one.right) ** 2 for one in self.accusations) if self.accusations else None


def score(
    spans: Sequence[BrokenSpan], answers: Sequence[Answer], places: FabricPlaces, during: Interval, grace_ns: int
) -> LocatingScore:
    """Compare answers with the truth. `during`: the workload, from whose begin answers count their times; `grace_ns`:
    for how long after a heal it is right to name what was broken."""
    return _Scoring(spans, answers, places, during, grace_ns).run()


class _Scoring:
    """The truth and the answers of one run, as times."""

    def __init__(
        self,
        spans: Sequence[BrokenSpan],
        answers: Sequence[Answer],
        places: FabricPlaces,
        during: Interval,
        grace_ns: int,
    ) -> None:
        self._spans, self._places, self._grace_ns, self._during = spans, places, grace_ns, during
        begins = [round(during.begin + answer.t_s * _S) for answer in answers]
        ends = [*begins[1:], during.end]
        self._held = list(zip(begins, ends, answers, strict=False))

    def run(self) -> LocatingScore:
        """The whole score."""
        found = {span.key: self._found(span) for span in self._spans}
        broken = TimeSet(Interval(span.begin_ns, min(span.end_ns, self._during.end)) for span in self._spans)
        excused = TimeSet(Interval(span.begin_ns, span.end_ns + self._grace_ns) for span in self._spans)
        told = TimeSet(Interval(a, b) for a, b, answer in self._held if answer.state is AnswerState.INCIDENT)
        during = TimeSet([self._during])
        clean_ns = during.length_ns - (during & excused).length_ns
        false = [one for one in told if not excused.holds(one.begin)]
        return LocatingScore(
            tuple(found[span.key] for span in self._spans if span.asked),
            tuple(found[span.key] for span in self._spans if not span.asked),
            tuple(self._accusations()),
            broken_ns=(during & broken).length_ns,
            told_ns=(told & broken).length_ns,
            clean_ns=clean_ns,
            quiet_ns=clean_ns - ((told & during).length_ns - (told & excused).length_ns),
            alarms=len(false),
        )

    # --- what was broken when ---

    def _on(self, t_ns: float, but: BrokenSpan | None = None) -> list[BrokenSpan]:
        """What was broken at this moment, or until just before."""
        return [one for one in self._spans if one is not but and one.begin_ns <= t_ns <= one.end_ns + self._grace_ns]

    def _meant(self, name: str, way: Direction | None, t_ns: float, but: BrokenSpan | None = None) -> frozenset[str]:
        """The links of what a name rightly names at this moment, in this direction; none if it is wrong."""
        on = self._on(t_ns, but)
        broken = frozenset(link for span in on for link in span.links)
        like = self._places.like(name, way, t_ns)
        names = {name, *(one.name for one in like if one.direction is None)}
        right = (one for one in names if self._places.is_right(one, broken))
        one_way = (link for span in on for link in _one_way(like, span))
        return frozenset((*(link for one in right for link in self._places.links(one)), *one_way))

    # --- accusations ---

    def _accusations(self) -> Iterator[Accusation]:
        before: Collection[str] = ()
        for t_ns, _, answer in self._held:
            now = answer.places if answer.state is not AnswerState.HEALTHY else {}
            known = {name for one in before for name in self._places.same(one, t_ns)}
            for name, incident in now.items():
                if name not in known:
                    yield Accusation(t_ns, name, bool(self._meant(name, incident.direction, t_ns)), incident.p)
            before = now

    # --- one fault ---

    def _found(self, span: BrokenSpan) -> FaultFound:
        located, incident = self._located(span)
        if located is None or incident is None:
            return FaultFound(span, located, None)
        what = None if incident.what is None else incident.what == span.kind
        itself = not span.links.isdisjoint(incident.where)  # on one that is like it the way may be the other
        direction = incident.direction == span.direction if incident.direction and itself else None
        since_ns = None
        if incident.since_s is not None:
            since_ns = abs(round(self._during.begin + incident.since_s * _S) - span.placed_ns)
        return FaultFound(span, located, self._cleared(span, span.placed_ns + located), what, direction, since_ns)

    def _located(self, span: BrokenSpan) -> tuple[int | None, Incident | None]:
        """How long it took until an answer named all its links, and the incident that names some."""
        for begin, end, answer in self._held:
            if end <= span.placed_ns or answer.state is AnswerState.HEALTHY:
                continue
            t_ns = max(begin, span.placed_ns)
            if t_ns > span.end_ns + self._grace_ns:
                break
            meant = {name: self._meant(name, one.direction, t_ns) for name, one in answer.places.items()}
            visible = span.shown or span.links & self._places.seen
            if visible and visible <= frozenset(link for links in meant.values() for link in links):
                about = next(one for name, one in answer.places.items() if meant[name] & visible)
                return t_ns - span.placed_ns, about
        return None, None

    def _cleared(self, span: BrokenSpan, named_ns: int) -> int | None:
        """How long after the heal nothing of it was named any more; None where it broke again before."""
        from_ns = max(span.end_ns, named_ns)
        again = min((s.begin_ns for s in self._spans if s.begin_ns > span.end_ns and s.links & span.links), default=inf)
        for begin, end, answer in self._held:
            t_ns = max(begin, from_ns)
            if end <= from_ns or t_ns >= again:
                continue
            named = answer.places if answer.state is not AnswerState.HEALTHY else {}
            if not any(self._is_about(name, one.direction, span, t_ns) for name, one in named.items()):
                return round(t_ns - span.end_ns)
        return None

    def _is_about(self, name: str, way: Direction | None, span: BrokenSpan, t_ns: float) -> bool:
        like = self._places.like(name, way, t_ns)
        names = {name, *(one.name for one in like if one.direction is None)}
        links = {link for one in names for link in self._places.links(one)}.union(_one_way(like, span))
        return bool(links & span.links) and not self._meant(name, way, t_ns, but=span)


def _one_way(like: Iterable[Suspect], span: BrokenSpan) -> set[str]:
    """Links of what loses packets one way, as far as they are among these in that direction."""
    return {one.name for one in like if one.direction and one.direction == span.direction} & span.links
