"""JSON Schema of scenario files, for editors."""

from __future__ import annotations

from typing import Any

from testbed.scenario.models import Scenario


def scenario_json_schema(model: type[Scenario] | None = None) -> dict[str, Any]:
    """Schema of the YAML keys (`link-flap`, `for`), with descriptions and examples.

    `model`: the type of a scenario with plugins, whose names are then included.
    """
    schema = (model or Scenario).model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "mrc-testbed scenario"
    return schema
