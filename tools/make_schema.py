"""Writes the JSON Schemas: scenarios/scenario.schema.json, for editors, and that of bench.json: `python
tools/make_schema.py`. Tests compare."""

from __future__ import annotations

import json

from mrc_testbed.testbed.bench import document
from mrc_testbed.testbed.scenario import scenario_json_schema
from mrc_testbed.testbed.scenario.load.shipped import SCHEMA_FILE


def text() -> str:
    """The whole file of scenarios, as `mrc-testbed schema` prints it."""
    return json.dumps(scenario_json_schema(), indent=2) + "\n"


def bench_text() -> str:
    """The whole file of benchmarks."""
    return json.dumps(document.bench_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(text(), encoding="utf-8")
    document.SCHEMA_FILE.write_text(bench_text(), encoding="utf-8")
