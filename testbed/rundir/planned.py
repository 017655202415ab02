"""plan.json: the fabric and the schedule of a run. The schedule that is written there is the one that is run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.rundir.results import run_folder
from testbed.scenario import Occurrence, Scenario, load_recorded, read_occurrences
from topos.export import plan_as_dict
from topos.plan import Plan, build_plan

PLAN = "plan.json"
FAULTS = "faults"


def plan_document(plan: Plan, occurrences: Iterable[Occurrence]) -> dict[str, Any]:
    """The content of plan.json."""
    return {**plan_as_dict(plan), FAULTS: [occurrence.as_record() for occurrence in occurrences]}


def recorded_scenario(folder: Path) -> Scenario:
    """The scenario of a run with the schedule that the run had, to be run again.

    Raises UsageError for a folder from which that cannot be known, ScenarioError when its scenario has mistakes.
    """
    folder = run_folder(folder)
    if not (folder / PLAN).is_file():
        raise UsageError(f"{folder}: has no {PLAN}: the run ended before it had a plan")
    document = _document(folder / PLAN)
    scenario = load_recorded(folder)
    plan = build_plan(scenario.shape())
    if {**document, FAULTS: []} != json.loads(json.dumps(plan_document(plan, ()))):
        other = "another shape than its scenario.yaml, or was written by another version"
        raise UsageError(f"{folder}: its {PLAN} has {other}; run the scenario.yaml instead")
    try:
        return scenario.with_occurrences(read_occurrences(document.get(FAULTS), plan, scenario.fault_kinds))
    except ValueError as error:
        raise UsageError(f"{folder}: its {PLAN} has no schedule that can be run again: {error}") from None


def _document(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path}: is no plan")
    return content
