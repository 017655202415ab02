"""How good the answers to a case were: the truth beside it against what is kept of each who answered.

| word | what it means |
|---|---|
| located | an answer named all links of an incident while it was on, or names that nobody can tell from them |
| near | an answer named something at a switch, or a host without one, where the incident was |
| false | accusations of what was whole |
| alarm | a time at which nothing was broken, and an answer began to say that something is |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mrc_testbed.testbed.checks.answers import Answer, AnswerState
from mrc_testbed.testbed.checks.broken import BrokenSpan
from mrc_testbed.testbed.checks.fabric_map import fabric_map
from mrc_testbed.testbed.checks.fabric_places import FabricPlaces
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.locating import FaultFound, LocatingScore, score
from mrc_testbed.testbed.checks.path_evidence import GRACE, period_ns
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.case import CaseFolder
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.topos.plan import Plan

_S = 1e9


@dataclass(frozen=True)
class CaseTruth:
    """What was true of a case. `kinds`: by the name of a fault its word; `during`: what was observed."""

    case: CaseFolder
    record: RunRecord
    kinds: Mapping[str, str]
    busy: bool
    during: Interval

    @property
    def spans(self) -> Sequence[BrokenSpan]:
        """What was broken from when to when, and what of it packets could show."""
        return [span for span in fabric_map(self.record).expected if span.begin_ns <= self.during.end]

    @cached_property
    def places(self) -> FabricPlaces:
        """What names in answers mean, by the packets that endpoints told of."""
        return FabricPlaces(self.record.plan, SuspectTable(self.record.plan), fabric_map(self.record).routes)

    @property
    def grace_ns(self) -> int:
        """For how long after a heal it is right to name what was broken: endpoints know no sooner."""
        return GRACE * period_ns(self.record)

    def score(self, answers: Sequence[Answer]) -> LocatingScore:
        """Of a stream of answers."""
        return score(self.spans, answers, self.places, self.during, self.grace_ns)


@dataclass(frozen=True, slots=True)
class IncidentFound:
    """How one incident of a case was found; all its cycles are one. Times in ns; None: never, or not said.

    `kind`: its word; `what`: what an answer should call it; `share`: of the packets that it took; `asked`: it takes
    packets of all sorts, so an answer should name it. `after_ns`: from its begin until it was located; `near`: whether
    something at one of its switches was named.
    """

    kind: str
    what: str
    share: float
    asked: bool
    after_ns: int | None
    near: bool
    direction: bool | None = None
    what_right: bool | None = None
    since_ns: int | None = None

    def document(self) -> dict[str, Any]:
        """As JSON has it, times in seconds."""
        return {
            "kind": self.kind,
            "what": self.what,
            "share": self.share,
            "asked": self.asked,
            "located_s": _seconds(self.after_ns),
            "near": self.near,
            "direction": self.direction,
            "what_right": self.what_right,
            "since_off_s": _seconds(self.since_ns),
        }


@dataclass(frozen=True, slots=True)
class CaseScore:
    """Of the answers of one name to one case. `kinds`: words of what was drawn, `busy` or `calm` for nothing."""

    case: str
    world: str
    by: str
    kinds: tuple[str, ...]
    incidents: tuple[IncidentFound, ...]
    figures: LocatingScore

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        figures = self.figures
        return {
            "case": self.case,
            "world": self.world,
            "by": self.by,
            "kinds": list(self.kinds),
            "incidents": [one.document() for one in self.incidents],
            "accusations": len(figures.accusations),
            "falsely_accused": figures.falsely_accused,
            "alarms": figures.alarms,
            "clean_s": figures.clean_ns / _S,
            "whether": figures.balanced_accuracy,
            "brier": figures.brier,
        }


def truth_of(case: CaseFolder) -> CaseTruth:
    """The truth of a case that counts. Raises UsageError where it is not there, or the case is not scored; RecordError,
    ScenarioError."""
    about, known = case.about(), case.known()
    folder = case.run_folder()
    if not known.get("believed", True):
        raise UsageError(f"{case.folder}: is not scored: the machine did not keep time when it was observed")
    if known.get("without_effect"):
        raise UsageError(f"{case.folder}: is not scored: nothing came of what was drawn")
    kinds = {f"f{number}": str(word) for number, word in enumerate(known.get("kinds", ()))}
    during = Interval(about["start_ns"], about["end_ns"])
    return CaseTruth(case, load_record(folder), kinds, bool(known.get("busy")), during)


def scored(truth: CaseTruth, by: str, answers: Sequence[Answer]) -> CaseScore:
    """The score of one who answered."""
    figures = truth.score(answers)
    found = {one.span.key: one for one in (*figures.faults, *figures.beside)}
    incidents = [
        _incident(truth, word, [found[span.key] for span in truth.spans if span.fault == name], answers)
        for name, word in truth.kinds.items()
        if any(span.fault == name for span in truth.spans)
    ]
    kinds = tuple(truth.kinds.values()) or ("busy" if truth.busy else "calm",)
    world = str(truth.case.about().get("world"))
    return CaseScore(truth.case.id, world, by, kinds, tuple(incidents), figures)


def _incident(truth: CaseTruth, word: str, cycles: Sequence[FaultFound], answers: Sequence[Answer]) -> IncidentFound:
    first = cycles[0].span
    found = next((one for one in cycles if one.located_ns is not None), None)
    near = any(_is_near(truth, one.span, answers) for one in cycles)
    share, asked = max(one.span.share for one in cycles), any(one.span.asked for one in cycles)
    if found is None or found.located_ns is None:
        return IncidentFound(word, first.kind, share, asked, None, near)
    after_ns = found.span.placed_ns + found.located_ns - first.placed_ns
    said = (found.direction, found.what, found.since_ns)
    return IncidentFound(word, first.kind, share, asked, after_ns, near, *said)


def _is_near(truth: CaseTruth, span: BrokenSpan, answers: Sequence[Answer]) -> bool:
    """Whether anything at a switch of it was named while it was broken, or a moment later."""
    plan = truth.record.plan
    where = _nodes(plan, span.links)
    until_ns = span.end_ns + truth.grace_ns
    return any(
        begin_ns <= until_ns and end_ns > span.placed_ns and where & _nodes(plan, answer.places)
        for begin_ns, end_ns, answer in _held(answers, truth.during)
        if answer.state is not AnswerState.HEALTHY
    )


def _held(answers: Sequence[Answer], during: Interval) -> Iterator[tuple[float, float, Answer]]:
    """Each answer with the time in which it holds."""
    begins = [during.begin + one.t_s * _S for one in answers]
    return zip(begins, [*begins[1:], during.end], answers, strict=False)


def _nodes(plan: Plan, names: Collection[str]) -> set[str]:
    """Switches at these places; a host for itself."""
    found: set[str] = set()
    for name in names:
        link = plan.link_by_name.get(name)
        found |= {name} if link is None else {end.node for end in (link.near, link.far)} - plan.host_by_name.keys()
    return found


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / _S
