"""Scores of many cases in one: by who answered, and by what was broken. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import fmean
from typing import Any

from mrc_testbed.testbed.checks.locating import f1_of
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.incidents.draw import KIND_WORDS
from mrc_testbed.testbed.incidents.scoring import CaseScore, IncidentFound

_NS_AN_HOUR = 3600e9
PLAIN_LOSS = 0.05
"""From this share of packets on a loss is plain."""
PAIR = "two at once"


class IncidentHarm(StrEnum):
    """How much an incident takes."""

    DEAD = "dead"
    PLAIN = "loses 5 % or more"
    FAINT = "loses less than 5 %"
    OTHER = "not asked for"
    NONE = "nothing is broken"


def harm_of(incident: IncidentFound) -> IncidentHarm:
    """Of one incident."""
    if not incident.asked:
        return IncidentHarm.OTHER
    if incident.share >= 1:
        return IncidentHarm.DEAD
    return IncidentHarm.PLAIN if incident.share >= PLAIN_LOSS else IncidentHarm.FAINT


def harm_of_case(score: CaseScore) -> IncidentHarm:
    """That of its least incident, as accusations are of the whole case."""
    order = [*IncidentHarm]
    return max(map(harm_of, score.incidents), key=order.index, default=IncidentHarm.NONE)


@dataclass(frozen=True, slots=True)
class ScoreTotals:
    """Of scores by one name. Incidents that are not asked for count in `beside` alone."""

    scores: Sequence[CaseScore]

    @property
    def incidents(self) -> list[IncidentFound]:
        """All of them."""
        return [one for score in self.scores for one in score.incidents]

    @property
    def asked(self) -> list[IncidentFound]:
        """Those that an answer should have named."""
        return [one for one in self.incidents if one.asked]

    @property
    def median_ns(self) -> float | None:
        """Until an incident that was asked for was located; infinite if most were not; None without one."""
        times = [inf if one.after_ns is None else one.after_ns for one in self.asked]
        return statistic(times, "median") if times else None

    @property
    def falsely_accused(self) -> int:
        """Accusations of what was whole."""
        return sum(score.figures.falsely_accused for score in self.scores)

    @property
    def precision(self) -> float | None:
        """The part of all accusations that was right; None if there was none."""
        count = sum(len(score.figures.accusations) for score in self.scores)
        return 1 - self.falsely_accused / count if count else None

    @property
    def recall(self) -> float | None:
        """The part of the incidents asked for that was located; None without one."""
        return _part([one.after_ns is not None for one in self.asked])

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both; None without both."""
        return f1_of(self.precision, self.recall)

    @property
    def alarms_an_hour(self) -> float | None:
        """False alarms by hour in which nothing was broken."""
        clean_ns = sum(score.figures.clean_ns for score in self.scores)
        return sum(score.figures.alarms for score in self.scores) * _NS_AN_HOUR / clean_ns if clean_ns else None

    @property
    def whether(self) -> float | None:
        """The mean of the balanced accuracies."""
        found = [score.figures.balanced_accuracy for score in self.scores]
        known = [one for one in found if one is not None]
        return fmean(known) if known else None

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        median = self.median_ns
        return {
            "cases": len(self.scores),
            "asked": len(self.asked),
            "located": sum(one.after_ns is not None for one in self.asked),
            "near": sum(one.near for one in self.asked),
            "located_median_s": None if median is None or median == inf else median / 1e9,
            "beside": len(self.incidents) - len(self.asked),
            "beside_located": sum(one.after_ns is not None for one in self.incidents if not one.asked),
            "accusations": sum(len(score.figures.accusations) for score in self.scores),
            "falsely_accused": self.falsely_accused,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "alarms_an_hour": self.alarms_an_hour,
            "whether": self.whether,
            "what": _part([one.what_right for one in self.incidents]),
            "direction": _part([one.direction for one in self.incidents]),
        }


def _part(answers: Iterable[bool | None]) -> float | None:
    known = [one for one in answers if one is not None]
    return sum(known) / len(known) if known else None


def by_name(scores: Iterable[CaseScore]) -> Mapping[str, ScoreTotals]:
    """The totals of each who answered."""
    found: dict[str, list[CaseScore]] = {}
    for score in scores:
        found.setdefault(score.by, []).append(score)
    return {name: ScoreTotals(rows) for name, rows in found.items()}


def by_kind(scores: Iterable[CaseScore]) -> Mapping[str, ScoreTotals]:
    """By what was drawn, in the order of docs/incidents.md; two at once have a row of their own."""
    found: dict[str, list[CaseScore]] = {word: [] for word in (*KIND_WORDS, PAIR)}
    for score in scores:
        found[score.kinds[0] if len(score.kinds) == 1 else PAIR].append(score)
    return {word: ScoreTotals(rows) for word, rows in found.items() if rows}


def by_harm(scores: Iterable[CaseScore]) -> Mapping[str, ScoreTotals]:
    """By the least of what each case has, from the gravest to none."""
    found: dict[IncidentHarm, list[CaseScore]] = {harm: [] for harm in IncidentHarm}
    for score in scores:
        found[harm_of_case(score)].append(score)
    return {harm.value: ScoreTotals(rows) for harm, rows in found.items() if rows}
