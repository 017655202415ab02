"""Scenarios: YAML -> typed, frozen `Scenario`, every mistake with its place in the file.

Importing this package loads neither pydantic nor ruamel.yaml; that happens when a name of it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrc_testbed.testbed.scenario.cells import Cell, Setting, in_brackets, load_cells
    from mrc_testbed.testbed.scenario.denylist import parse_paths
    from mrc_testbed.testbed.scenario.endpoint import EndpointSettings
    from mrc_testbed.testbed.scenario.faults import (
        Effect,
        Entry,
        FaultParameters,
        LinkEnd,
        Occurrence,
        read_occurrences,
    )
    from mrc_testbed.testbed.scenario.loader import load_recorded, load_scenario, load_scenario_text
    from mrc_testbed.testbed.scenario.models import FabricSettings, Scenario
    from mrc_testbed.testbed.scenario.render import render_problems
    from mrc_testbed.testbed.scenario.schema import scenario_json_schema
    from mrc_testbed.testbed.scenario.workloads import FlowSet

SCENARIO_FILE = "scenario.yaml"
"""The scenario as run, in its run folder."""

_HOMES = {
    "Cell": "cells",
    "Effect": "faults",
    "Occurrence": "faults",
    "EndpointSettings": "endpoint",
    "Entry": "faults",
    "FabricSettings": "models",
    "FlowSet": "workloads",
    "FaultParameters": "faults",
    "LinkEnd": "faults",
    "Scenario": "models",
    "Setting": "cells",
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
    "EndpointSettings",
    "Entry",
    "FabricSettings",
    "FaultParameters",
    "FlowSet",
    "LinkEnd",
    "Occurrence",
    "Scenario",
    "Setting",
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
