"""bench.json: what a benchmark came to, as a document with a schema. Figures are measurements, never pass or fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mrc_testbed.testbed.bench.catalogue import BenchSize, TestStatus
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.rundir.files import read_json
from mrc_testbed.testbed.scenario.model.transports import WorldKind

BENCH_FILE = "bench.json"
SCHEMA_FILE = Path(__file__).with_name("bench.schema.json")
"""The JSON Schema of `bench.json`, which `tools/make_schema.py` writes."""
FORMAT: Literal[1] = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KpiResult(_Strict):
    """A KPI of one transport under one set of parameters; its statistics are over `n` values of `runs` runs."""

    name: str
    unit: str = Field(description="empty: a ratio or a count")
    transport: str
    parameters: dict[str, Any] = Field(description="the axes of the matrix by key, without the seed")
    n: int = Field(ge=0, description="values; 0: not measured, and `why` says why")
    runs: int = Field(ge=0, description="runs that gave them, each with a seed of its own")
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    cv: float | None = Field(
        description="standard deviation over mean of the means of runs; null for fewer than two runs or a mean of 0"
    )
    why: str = Field(description="why it was not measured, or not in all runs; else empty")


class TestResult(_Strict):
    """One test of the draft."""

    __test__ = False

    ref: str = Field(description="its section in the draft")
    title: str
    status: TestStatus
    why: str = Field(description="of one that is adapted or not run")
    fabric: list[str] = Field(description="the fabrics of its runs, in words")
    parameters: dict[str, list[Any]] = Field(description="the axes of its matrix by key")
    iterations: int = Field(ge=0, description="seeds of each setting")
    kpis: list[KpiResult]
    deviations: list[str] = Field(description="where it differs from the draft")
    runs: list[str] = Field(description="folders of its runs, from that of bench.json on")
    anomalies: list[str] = Field(description="runs that were not measured, that died, or with unexpected findings")


class BenchDocument(_Strict):
    """The whole benchmark."""

    format: Literal[1]
    draft: str
    revision: str
    made: str = Field(description="when, in UTC")
    version: str
    commit: str | None
    world: WorldKind
    size: BenchSize
    fabric: list[str] = Field(description="all fabrics of all runs, in words")
    transports: dict[str, dict[str, Any]] = Field(description="by name what each changes of a scenario")
    environment: dict[str, Any] = Field(description="the machine")
    tests: list[TestResult]
    left_out: list[str] = Field(description="tests that the budget left no time for")


def read_bench(place: Path) -> BenchDocument:
    """The document of a folder, or a file. Raises UsageError where there is none, and for one that is none."""
    path = place if place.is_file() else place / BENCH_FILE
    found = read_json(path)
    if found is None:
        raise UsageError(f"{path}: is missing or unreadable; `mrc-testbed bench run --out {path.parent}` writes it")
    if found.get("format") != FORMAT:
        raise UsageError(f"{path}: is of format {found.get('format')}, this mrc-testbed knows {FORMAT}")
    try:
        return BenchDocument.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def bench_schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    schema = BenchDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "mrc-testbed benchmark", **schema}
