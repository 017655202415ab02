"""JSON Schema of scenario files, for editors."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.scenario.faults import with_kinds
from mrc_testbed.testbed.scenario.model.offered import NOTHING, Offered
from mrc_testbed.testbed.scenario.plugins.extended import scenario_model

SCHEMA_ID = "https://www.schemastore.org/mrc-testbed-scenario.json"
"""A name for the schema, not a promise that it is there: where schemastore.org will have it."""

_ABOUT = (
    "What mrc-testbed runs: a fabric, what its hosts do, what breaks and when, and what must hold. "
    "`mrc-testbed validate FILE` finds more than a schema can."
)


def scenario_json_schema(offered: Offered = NOTHING) -> dict[str, Any]:
    """Schema of the YAML keys (`link-flap`, `for`), with descriptions and examples, in the draft that editors know.

    `offered`: by plugins, whose names and keys are then included; such a schema has no `$id`, as it is no other's.
    """
    with with_kinds(offered.named("fault")):
        schema: dict[str, Any] = _in_draft_07(scenario_model(offered).model_json_schema(by_alias=True))
    head = {"$schema": "http://json-schema.org/draft-07/schema#"}
    if offered == NOTHING:
        head["$id"] = SCHEMA_ID
    told = {"title": "mrc-testbed scenario", "description": _ABOUT}
    return {**head, **told, **{key: value for key, value in schema.items() if key not in told}}


def _in_draft_07(part: Any) -> Any:
    """pydantic writes draft 2020-12, in which a list of items by place has another name."""
    if isinstance(part, list):
        return [_in_draft_07(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {"items" if key == "prefixItems" else key: _in_draft_07(value) for key, value in part.items()}
