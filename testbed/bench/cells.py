"""The cells of the benchmark: its tests as scenario files with variants and a matrix, and what they will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from math import ceil
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from mrc_testbed.testbed.app.batch import Repetitions, load_cases
from mrc_testbed.testbed.bench.catalogue import BenchSize, BenchTest
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.model.variants import shipped_sets, variant_set
from mrc_testbed.testbed.scenario.model.wall_time import wall_time
from mrc_testbed.testbed.transports.registry import named

CELL_S = 1.5
"""What a cell on the kernel takes beside its scenario: its process, warm-up, verdict and figures."""


@cache
def compared() -> Mapping[str, Mapping[str, Any]]:
    """What is compared, as variants of the scenario of each test: the shipped set of baselines."""
    return variant_set(str(shipped_sets()["baselines"])).changes


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What is to be run."""

    tests: tuple[BenchTest, ...]
    transports: tuple[str, ...]
    size: BenchSize = BenchSize.SMALL
    world: WorldKind = WorldKind.VIRTUAL

    def variants(self, test: BenchTest) -> dict[str, dict[str, Any]]:
        """What the test is run with in this world, by name; empty if it is not run."""
        if test.virtual_only and self.world is WorldKind.KERNEL:
            return {}
        own = {name: dict(compared()[name]) for name in self.transports if not self.why_not(test, name)}
        asked = {compared()[name]["transport"] for name in self.transports}
        return own | {name: more for name, more in test.also.items() if more["transport"] in asked}

    def why_not(self, test: BenchTest, transport: str) -> str:
        """Why a transport that is asked for is not run; else empty."""
        if test.transports and transport not in test.transports:
            return "the test makes no sense for it"
        without_kernel = self.world is WorldKind.VIRTUAL and named(compared()[transport]["transport"]).of_kernel
        return f"virtual time has no {transport}, which a kernel makes" if without_kernel else ""


def transports_named(asked: str) -> tuple[str, ...]:
    """Of `mrc,tcp`; empty: all. Raises UsageError for one that is not there."""
    words = [word.strip() for word in asked.split(",")] if asked else list(compared())
    if unknown := next((word for word in words if word not in compared()), None):
        raise UsageError(f"--transports {asked}: {unknown!r} is none of {', '.join(compared())}")
    return tuple(dict.fromkeys(words))


def scenario_text(test: BenchTest, request: BenchRequest) -> str:
    """The scenario file of a test: it can be run by `mrc-testbed run` as well."""
    size = test.sizes[request.size]
    world = {"world": "virtual", "scale": "real"} if request.world is WorldKind.VIRTUAL else {}
    document = {
        "name": f"bench-{test.ref.replace('.', '-')}",
        "about": test.title,
        **world,
        **test.scenario,
        **size.scenario,
        "variants": request.variants(test),
        "matrix": {**size.matrix, "seed": list(range(1, size.seeds + 1))},
    }
    out = StringIO()
    yaml = YAML()
    yaml.width = 120
    yaml.dump(document, out)
    return out.getvalue()


def scenario_file(folder: Path, test: BenchTest) -> Path:
    """Where the scenario of a test lies."""
    return folder / f"{test.ref}.yaml"


def write_scenarios(request: BenchRequest, folder: Path) -> None:
    """One file for each test that has runs. Raises OSError."""
    make_own(folder)
    for test in runnable(request):
        scenario_file(folder, test).write_text(scenario_text(test, request), encoding="utf-8")


def runnable(request: BenchRequest) -> list[BenchTest]:
    """The tests that have runs with these transports in this world."""
    return [test for test in request.tests if test.is_run and request.variants(test)]


def cases_of(test: BenchTest, folder: Path) -> list[Case]:
    """The cases of a test, of its file in `folder`. Raises ScenarioError."""
    return load_cases([scenario_file(folder, test)], times=Repetitions(many=True))


def cpu_s(scenario: Scenario) -> float:
    """CPU seconds of a run in virtual time, at most; on the kernel it takes the time of its scenario."""
    if scenario.world is WorldKind.KERNEL:
        return scenario.expected_ns / 1e9 + CELL_S
    return wall_time(scenario).most_s


def beyond_budget(taking_s: Mapping[str, float], budget_s: float) -> list[str]:
    """The refs of the tests that do not fit any more, in order, each as a whole."""
    left, spent_s = [], 0.0
    for ref, seconds in taking_s.items():
        if spent_s + seconds <= budget_s:
            spent_s += seconds
        else:
            left.append(ref)
    return left


def wall_s(cases: Sequence[Case], cores: int, world: WorldKind) -> float:
    """How long they take, `cores` at once in virtual time and one at a time on the kernel."""
    together = sum(cpu_s(case.scenario) for case in cases)
    return together / (cores if world is WorldKind.VIRTUAL else 1)


def rough_time(seconds: float) -> str:
    """`40 s`, `7 min`, `3.5 h`."""
    if seconds < 90:
        return f"{ceil(seconds)} s"
    return f"{ceil(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
