"""Mutants outside of functions: constants, tables, classes. They act when their module is imported, so each has a child
that has loaded no module of ours yet, and in it a pytest session over the tests that reach the module or what imports
the name."""

from __future__ import annotations

import ast
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants.child import RED, Child, Ended, Work, side_by_side, start
from tests.mutants.exchange import ROOT, import_mutated, module_of, source_of
from tests.mutants.operators import Place
from tests.mutants.reach import Reach, distance, hash_of, hash_of_lines
from tests.mutants.results import ORACLES, Result

MOST_S = 10.0
"""CPU time of the tests that a mutant meets, at most, oracles and others each."""
LIMIT_S = 60.0
"""CPU time after which a mutant is taken for endless."""
OPTIONS = (
    *("-q", "-s", "-x", "-p", "no:cacheprovider", "--hypothesis-profile", "mutants", "-m", "not nightly"),
    "--assert=plain",  # pytest would import our modules by itself, for its asserts, and none of them mutated
)


class Chosen(NamedTuple):
    """A mutant, and the tests that it meets: functions, with all of their cases. The names of cases may come from the
    very table that is mutated."""

    place: Place
    tests: tuple[str, ...]
    made_of: str
    """Hash of all of them."""

    def result(self, ended: Ended) -> Result:
        """What an end of its child means."""
        mutant = self.place.mutant
        if ended.number is None:
            return Result(mutant, "survives" if self.tests else "unreached", "", self.made_of)
        return Result(mutant, ended.how, self.tests[ended.number] if self.tests else "", hash_of(ROOT / mutant.file))


def try_imports(chosen: Iterator[Chosen], children: int, folder: Path) -> Iterator[tuple[Chosen, Ended]]:
    """Side by side, each as its child ends."""

    def starts() -> Iterator[tuple[Chosen, Callable[[], Child]]]:
        for number, one in enumerate(chosen):
            scratch = folder / f"imports-{number}"
            yield one, partial(start, session_of(one, scratch), scratch, 2 * LIMIT_S)

    yield from side_by_side(children, starts())


def choose(place: Place, reaches: dict[str, Reach], files: Sequence[str]) -> Chosen:
    """`files`: the modules that may import what is mutated."""
    tests = tests_for(place, reaches, files)
    kept = sorted(f"{name} {reach.made_of}" for name, reach in reaches.items() if name.split("[")[0] in tests)
    return Chosen(place, tests, hash_of_lines([hash_of(ROOT / place.mutant.file), *kept]))


def tests_for(place: Place, reaches: dict[str, Reach], files: Sequence[str]) -> tuple[str, ...]:
    """Test functions that reach the module, or one that imports the name: oracles first, then those that are about it
    by their name, then the fastest."""
    name = place.mutant.function.split(".")[0]
    near = {place.mutant.file, *(file for file in files if name in _imported(file, place.mutant.file))}
    cost: dict[str, float] = {}
    for nodeid, reach in reaches.items():
        if not near.isdisjoint(reach.lines):
            function = nodeid.split("[")[0]
            cost[function] = cost.get(function, 0.0) + reach.cpu_s

    def turn(function: str) -> tuple[float, float]:
        return distance(function, place.mutant.file), cost[function]

    kept = []
    for oracle in (True, False):
        spent = 0.0
        for function in sorted((each for each in cost if each.startswith(ORACLES) is oracle), key=turn):
            if spent + cost[function] <= MOST_S:
                kept.append(function)
                spent += cost[function]
    return tuple(kept)


def session_of(chosen: Chosen, scratch: Path) -> Work:
    """Import mutated, collect, run until one is red."""

    def work(say: Callable[[str], None]) -> None:
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        import_mutated(chosen.place)
        status = pytest.main([*OPTIONS, f"--basetemp={scratch}/tests", *chosen.tests], plugins=[_FirstRed(chosen, say)])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            say(RED)  # the module cannot even be imported, or says what no test understands

    return work


class _FirstRed:
    """Says which test was red."""

    def __init__(self, chosen: Chosen, say: Callable[[str], None]) -> None:
        self._numbers = {name: number for number, name in enumerate(chosen.tests)}
        self._say = say

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say(str(self._numbers.get(report.nodeid.split("[")[0], 0)))
            self._say(RED)


@cache
def _imported(file: str, source: str) -> frozenset[str]:
    """The names that a file imports from another one of the rooms."""
    module = module_of(source)
    found: set[str] = set()
    for node in ast.walk(ast.parse(source_of(file))):
        if isinstance(node, ast.ImportFrom) and node.module == module:
            found |= {alias.name for alias in node.names}
    return frozenset(found)


def modules_of(rooms: Sequence[str]) -> list[str]:
    """All files of these rooms, by their paths from the root."""
    return [str(file.relative_to(ROOT)) for room in rooms for file in sorted((ROOT / room).glob("*.py"))]
