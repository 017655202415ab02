"""Scenarios: YAML -> typed, frozen `Scenario`, every mistake with its place in the file.

Importing this package loads neither pydantic nor ruamel.yaml; that happens when a name of it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrc_testbed.testbed.scenario.cells.cells import Cell, Setting, in_brackets, load_cells
    from mrc_testbed.testbed.scenario.faults import (
        Effect,
        Entry,
        FaultParameters,
        LinkEnd,
        Occurrence,
        read_occurrences,
    )
    from mrc_testbed.testbed.scenario.load.loader import load_recorded, load_scenario, load_scenario_text
    from mrc_testbed.testbed.scenario.load.schema import scenario_json_schema
    from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
    from mrc_testbed.testbed.scenario.model.fabric import FabricSettings
    from mrc_testbed.testbed.scenario.model.models import Scenario
    from mrc_testbed.testbed.scenario.model.workloads import FlowSet
    from mrc_testbed.testbed.scenario.text.denylist import parse_paths
    from mrc_testbed.testbed.scenario.text.render import render_problems
    from mrc_testbed.testbed.scenario.text.source import SCENARIO_FILE

_HOMES = {
    "SCENARIO_FILE": "text.source",
    "Cell": "cells.cells",
    "Effect": "faults",
    "Occurrence": "faults",
    "EndpointSettings": "model.endpoint",
    "Entry": "faults",
    "FabricSettings": "model.fabric",
    "FlowSet": "model.workloads",
    "FaultParameters": "faults",
    "LinkEnd": "faults",
    "Scenario": "model.models",
    "Setting": "cells.cells",
    "in_brackets": "cells.cells",
    "load_cells": "cells.cells",
    "load_recorded": "load.loader",
    "load_scenario": "load.loader",
    "load_scenario_text": "load.loader",
    "parse_paths": "text.denylist",
    "read_occurrences": "faults",
    "render_problems": "text.render",
    "scenario_json_schema": "load.schema",
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
