"""JSON Schema of scenario files, for editors."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.scenario.faults import with_kinds
from mrc_testbed.testbed.scenario.model.offered import NOTHING, Offered
from mrc_testbed.testbed.scenario.plugins.extended import scenario_model


def scenario_json_schema(offered: Offered = NOTHING) -> dict[str, Any]:
    """Schema of the YAML keys (`link-flap`, `for`), with descriptions and examples.

    `offered`: by plugins, whose names and keys are then included.
    """
    with with_kinds(offered.named("fault")):
        schema = scenario_model(offered).model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "mrc-testbed scenario"
    return schema
