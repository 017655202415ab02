"""Scenarios: YAML -> typed, frozen `Scenario`, every mistake with its place in the file.

Importing this package loads neither pydantic nor ruamel.yaml; that happens when a name of it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbed.scenario.denylist import parse_paths
    from testbed.scenario.faults import Changes, Deny, Fault, How, LinkDown, LinkFlap, Place, SwitchReboot
    from testbed.scenario.loader import load_scenario, load_scenario_text
    from testbed.scenario.models import Endpoint, Fabric, Scenario
    from testbed.scenario.render import render_problems
    from testbed.scenario.schema import scenario_json_schema
    from testbed.scenario.workloads import FlowSet

_HOMES = {
    "Changes": "faults",
    "Deny": "faults",
    "Endpoint": "models",
    "Fabric": "models",
    "Fault": "faults",
    "FlowSet": "workloads",
    "How": "faults",
    "LinkDown": "faults",
    "LinkFlap": "faults",
    "Place": "faults",
    "Scenario": "models",
    "SwitchReboot": "faults",
    "load_scenario": "loader",
    "load_scenario_text": "loader",
    "parse_paths": "denylist",
    "render_problems": "render",
    "scenario_json_schema": "schema",
}

__all__ = [
    "Changes",
    "Deny",
    "Endpoint",
    "Fabric",
    "Fault",
    "FlowSet",
    "How",
    "LinkDown",
    "LinkFlap",
    "Place",
    "Scenario",
    "SwitchReboot",
    "load_scenario",
    "load_scenario_text",
    "parse_paths",
    "render_problems",
    "scenario_json_schema",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
