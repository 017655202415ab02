"""The bounds of repeated runs, from their folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.judge import read_verdict
from mrc_testbed.testbed.checks.record import load_outline
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.bounds import BoundsOf, bounds_of
from mrc_testbed.testbed.compare.runs import refuse_duplicates
from mrc_testbed.testbed.compare.settings import settings_of
from mrc_testbed.testbed.compare.worlds import Twin, names_of
from mrc_testbed.testbed.errors import TestbedError, UsageError
from mrc_testbed.testbed.rundir.files import any_values
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind


def bounds_of_folders(folders: Sequence[Path], chance: float) -> list[BoundsOf]:
    """One for each scenario and settings, in order of appearance. Raises UsageError with a line for each run whose
    scenario or verdict cannot be read, and for a run that is there twice."""
    refuse_duplicates(folders)
    scenarios: dict[Twin, Scenario] = {}
    verdicts: dict[Twin, dict[Any, Verdict]] = {}
    copies: dict[Twin, int] = {}
    wrong = []
    for folder in folders:
        try:
            with any_values(folder):
                scenario, verdict = load_outline(folder).scenario, read_verdict(folder)
                _require_numbers(verdict)
                alike = (("name", scenario.name), *sorted(settings_of(scenario).items()))
        except TestbedError as error:
            wrong.append(str(error))
            continue
        scenarios.setdefault(alike, scenario)
        # In virtual time a seed is one run, however often it was made.
        run = scenario.seed if scenario.world is WorldKind.VIRTUAL else folder
        mine = verdicts.setdefault(alike, {})
        copies[alike] = copies.get(alike, 0) + (run in mine)
        mine[run] = verdict
    if wrong:
        raise UsageError("\n".join(wrong))
    names = names_of(scenarios)
    return [
        replace(bounds_of(names[alike], mine.values(), chance), copies=copies[alike])
        for alike, mine in verdicts.items()
    ]


def _require_numbers(verdict: Verdict) -> None:
    """Raises ValueError for a check whose figures are none."""
    for check in verdict.checks:
        figures = (check.observed, check.limit)
        good = all(figure is None or (type(figure) in (int, float) and isfinite(figure)) for figure in figures)
        if not good or not isinstance(check.expected, str) or not isinstance(check.name, str):
            raise ValueError(f"the check {check.name!r} has observed {check.observed!r} of {check.expected!r}")
