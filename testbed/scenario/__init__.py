"""Scenarios: YAML -> typed, frozen `Scenario`, every mistake with its place in the file.

Importing this package loads neither pydantic nor ruamel.yaml; that happens when a name of it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbed.scenario.cells import Cell, Setting, in_brackets, load_cells
    from testbed.scenario.denylist import parse_paths
    from testbed.scenario.endpoint import Endpoint
    from testbed.scenario.faults import Effect, Entry, FaultParameters, Occurrence, Place, effect_of, read_occurrences
    from testbed.scenario.loader import load_recorded, load_scenario, load_scenario_text
    from testbed.scenario.models import Fabric, Scenario
    from testbed.scenario.render import render_problems
    from testbed.scenario.schema import scenario_json_schema
    from testbed.scenario.workloads import FlowSet

SCENARIO_FILE = "scenario.yaml"
"""The scenario as run, in its run folder."""

_HOMES = {
    "Cell": "cells",
    "Effect": "faults",
    "Occurrence": "faults",
    "Endpoint": "endpoint",
    "Entry": "faults",
    "Fabric": "models",
    "FlowSet": "workloads",
    "FaultParameters": "faults",
    "Place": "faults",
    "Scenario": "models",
    "Setting": "cells",
    "effect_of": "faults",
    "in_brackets": "cells",
    "load_cells": "cells",
    "load_recorded": "loader",
    "load_scenario": "loader",
    "load_scenario_text": "loader",
    "parse_paths": "denylist",
    "read_occurrences": "faults",
    "render_problems": "render",
    "scenario_json_schema": "schema",
}

__all__ = [
    "SCENARIO_FILE",
    "Cell",
    "Effect",
    "Endpoint",
    "Entry",
    "Fabric",
    "FaultParameters",
    "FlowSet",
    "Occurrence",
    "Place",
    "Scenario",
    "Setting",
    "effect_of",
    "in_brackets",
    "load_cells",
    "load_recorded",
    "load_scenario",
    "load_scenario_text",
    "parse_paths",
    "read_occurrences",
    "render_problems",
    "scenario_json_schema",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
