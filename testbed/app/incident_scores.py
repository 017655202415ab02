"""Scores of cases, each with all who answered it."""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.answering import answers_to
from mrc_testbed.testbed.incidents.case import CaseFolder
from mrc_testbed.testbed.incidents.scoring import CaseScore, scored, truth_of


def scores_of(cases: Iterable[CaseFolder]) -> list[CaseScore]:
    """Case by case, name by name. Raises UsageError for one without answers or truth, or that does not count;
    AnswersError, RecordError."""
    found = []
    for case in cases:
        answers = answers_to(case)
        if not answers:
            raise UsageError(f"{case.folder}: has no answers; `incident answer {case.folder} FILE` keeps some")
        truth = truth_of(case)
        found += [scored(truth, name, stream) for name, stream in answers.items()]
    return found
