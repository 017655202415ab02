"""The bounds of repeated runs, from their folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.checks.judge import read_verdict
from testbed.checks.record import load_outline
from testbed.checks.result import Verdict
from testbed.compare.bounds import BoundsOf, bounds_of
from testbed.compare.runs import refuse_duplicates
from testbed.compare.settings import settings_of
from testbed.compare.worlds import Twin, names_of
from testbed.errors import TestbedError, UsageError
from testbed.rundir.files import any_values
from testbed.scenario import Scenario


def bounds_of_folders(folders: Sequence[Path], chance: float) -> list[BoundsOf]:
    """One for each scenario and settings, in order of appearance. Raises UsageError with a line for each run whose
    scenario or verdict cannot be read, and for a run that is there twice."""
    refuse_duplicates(folders)
    scenarios: dict[Twin, Scenario] = {}
    verdicts: dict[Twin, list[Verdict]] = {}
    wrong = []
    for folder in folders:
        try:
            with any_values(folder):
                scenario, verdict = load_outline(folder).scenario, read_verdict(folder)
                alike = (("name", scenario.name), *sorted(settings_of(scenario).items()))
        except TestbedError as error:
            wrong.append(str(error))
            continue
        scenarios.setdefault(alike, scenario)
        verdicts.setdefault(alike, []).append(verdict)
    if wrong:
        raise UsageError("\n".join(wrong))
    names = names_of(scenarios)
    return [bounds_of(names[alike], mine, chance) for alike, mine in verdicts.items()]
