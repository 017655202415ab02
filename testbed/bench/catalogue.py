"""The tests of the benchmark: what the draft asks for, and how the testbed runs it. One YAML file a test."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.inputs import input_text
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source

DRAFT, REVISION = "draft-calabria-bmwg-ai-fabric-training-bench", "04"
"""The newest revision that was read: August 2026, github.com/fcalabri/bmwg-ai-fabric-training-bench."""
SUITE = Path(__file__).with_name("suite")
"""The shipped tests."""


class TestStatus(StrEnum):
    """How much of what the draft describes the testbed does."""

    __test__ = False  # pytest takes it for a test by its name

    RUN = "run"
    ADAPTED = "adapted"
    """With the deviations that are listed."""
    NOT_RUN = "not-run"


class BenchSize(StrEnum):
    """How much of a test is run."""

    SMALL = "small"
    """All tests in a quarter of an hour on two cores."""
    DRAFT = "draft"
    """As near to the numbers of the draft as the testbed goes: hours."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Kpi(_Part):
    """A figure of a test. Exactly one of `figure`, `formula` and `longest` says how it is found.

    `figure`: of the language of expectations, one value a run. `formula`: a name of `FORMULAS`, which may give several
    values a run. `longest`: the greatest value of this key of the matrix up to which `figure` is 0; one value for each
    seed. `over`: its value is divided by that of the run of the same seed with these settings.
    """

    name: str
    unit: str = ""
    figure: str = ""
    formula: str = ""
    longest: str = ""
    over: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.figure) == bool(self.formula) or (self.longest and not self.figure):
            raise ValueError("a KPI needs `figure` or `formula`, and beside `longest` a figure")
        if self.longest and self.over:
            raise ValueError("`longest` has no `over`")
        return self


class SizeOfTest(_Part):
    """What a size changes: keys of the scenario as a whole, the axes of its matrix, and the number of seeds."""

    seeds: int = Field(default=1, ge=1)
    scenario: dict[str, Any] = Field(default_factory=dict)
    matrix: dict[str, list[Any]] = Field(default_factory=dict)


class BenchTest(_Part):
    """A test of the draft. `ref`: its section; `why`: of one that is adapted or not run.

    `transports`: those that make sense for it; empty for all. `also`: more variants, each run if one with its transport
    is asked for. `virtual_only`: the kernel has no such fabric.
    """

    ref: str
    title: str
    status: TestStatus
    why: str = ""
    scenario: dict[str, Any] = Field(default_factory=dict)
    sizes: dict[BenchSize, SizeOfTest] = Field(default_factory=dict)
    transports: list[str] = Field(default_factory=list)
    also: dict[str, dict[str, Any]] = Field(default_factory=dict)
    virtual_only: bool = False
    kpis: list[Kpi] = Field(default_factory=list)
    deviations: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.status is not TestStatus.RUN and not self.why:
            raise ValueError(f"`why` is missing: the test is {self.status.value}")
        if self.is_run and (set(self.sizes) != set(BenchSize) or not self.scenario or not self.kpis):
            raise ValueError("a test that is run needs `scenario`, `kpis`, and both sizes")
        return self

    @property
    def is_run(self) -> bool:
        """It has runs."""
        return self.status is not TestStatus.NOT_RUN


def load_tests(folder: Path = SUITE) -> tuple[BenchTest, ...]:
    """All tests, by section. Raises UsageError with file and key for what is no test, ScenarioError for no YAML."""
    found = [_read(path) for path in sorted(folder.glob("*.yaml"))]
    if not found:
        raise UsageError(f"{folder}: the tests of the benchmark are missing; reinstall mrc-testbed")
    return tuple(sorted(found, key=lambda test: _by_number(test.ref)))


def sections_named(tests: Sequence[BenchTest], asked: str) -> tuple[BenchTest, ...]:
    """Those of `5.1,10`: a section is that test, or all tests in it. Empty: all. Raises UsageError for one that is not
    there."""
    if not asked:
        return tuple(tests)
    words = [word.strip() for word in asked.split(",")]
    refs = [test.ref for test in tests]
    for word in words:
        if not any(_is_in(ref, word) for ref in refs):
            hint = did_you_mean(word, refs) or "; `mrc-testbed bench list` shows all"
            raise UsageError(f"--tests {asked}: the benchmark has no test {word!r}{hint}")
    return tuple(test for test in tests if any(_is_in(test.ref, word) for word in words))


def _is_in(ref: str, word: str) -> bool:
    return ref == word or ref.startswith(f"{word}.")


def _by_number(ref: str) -> list[int]:
    return [int(part) for part in ref.split(".") if part.isdecimal()]


def _read(path: Path) -> BenchTest:
    try:
        test = BenchTest.model_validate(parse_source(input_text(path), str(path)).data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}: {where + ': ' if where else ''}{first['msg']}") from None
    if test.ref != path.stem:
        raise UsageError(f"{path}: ref: is {test.ref}, and the file is named after {path.stem}")
    return test
