"""plan.json: the fabric and the schedule that a run executes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.rundir.files import read_json, refuse_strange_files
from mrc_testbed.testbed.rundir.results import run_folder
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_recorded, read_occurrences
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.source import Override
from mrc_testbed.topos.export import plan_as_dict
from mrc_testbed.topos.plan import Plan

PLAN = "plan.json"
FAULTS = "faults"


def plan_document(plan: Plan, occurrences: Iterable[Occurrence]) -> dict[str, Any]:
    """The content of plan.json."""
    return {**plan_as_dict(plan), FAULTS: [occurrence.as_record() for occurrence in occurrences]}


def recorded_scenario(folder: Path, virtual: bool | None = None) -> Scenario:
    """The scenario of a run with its recorded schedule, ready to be run again; in virtual time, on the kernel, or
    (None) where it was run.

    Raises UsageError for a folder without a usable plan, RecordError for one that is damaged, ScenarioError for
    mistakes in its scenario.
    """
    folder = run_folder(folder)
    refuse_strange_files(folder)
    if not (folder / PLAN).is_file():
        raise UsageError(f"{folder}: has no {PLAN}: the run ended before it had a plan")
    document = read_json(folder / PLAN)
    if document is None:
        raise UsageError(f"{folder / PLAN}: cannot be read: it is not a plan")
    scenario = load_recorded(folder, _in_world(virtual))
    plan = scenario.plan()
    if {**document, FAULTS: []} != json.loads(json.dumps(plan_document(plan, ()))):
        other = "does not fit its scenario.yaml, or another version wrote it"
        raise UsageError(f"{folder}: its {PLAN} {other}; run the scenario.yaml instead")
    try:
        return scenario.with_occurrences(read_occurrences(document.get(FAULTS), plan, scenario.fault_kinds))
    except ValueError as error:
        raise UsageError(f"{folder}: its {PLAN} has no schedule to replay: {error}") from None


def _in_world(virtual: bool | None) -> list[Override]:
    if virtual is None:
        return []
    world = WorldKind.VIRTUAL if virtual else WorldKind.KERNEL
    return [Override(("world",), world.value, f"--{world.value}")]
