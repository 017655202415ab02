"""Writes scenarios/scenario.schema.json, for editors: `python tools/make_schema.py`. A test compares."""

from __future__ import annotations

import json

from mrc_testbed.testbed.scenario import scenario_json_schema
from mrc_testbed.testbed.scenario.load.shipped import SCHEMA_FILE


def text() -> str:
    """The whole file, as `mrc-testbed schema` prints it."""
    return json.dumps(scenario_json_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(text(), encoding="utf-8")
