"""The heaviest tests start first: one that starts last keeps one worker busy while the others have nothing left.

tests/heavy.txt has the seconds of each test that takes 0.3 or more, as the last run that wrote it measured them. A test
that is not in it counts as light, which costs time and nothing else. Tests that share a browser, or something heavy
that is made for their file, stay together: another worker would make it again.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("heavy.txt")
HEAVY_S = 2.0
"""Lighter ones stay where they are."""
Unit = list[pytest.Item]
"""Tests that one worker runs one after the other, since they share what takes long to make."""


class HeavyFirst:
    """Orders what was collected, and writes down what each test took."""

    def __init__(self, times: str | None, at_most: float | None) -> None:
        """`times`: the file to which a line for each test is appended, seconds and name. `at_most`: tests that took
        longer are left out, and those that share with them: the next one would make what they share."""
        self._times = times
        self._at_most = math.inf if at_most is None else at_most
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Worksteal deals out as many stretches of the list as there are workers: the heavy ones go to their heads.
        Those on the real kernel to the first half of the workers alone, or they would make each other late."""
        lines = (line.split(" ", 1) for line in FILE.read_text().splitlines())
        took = defaultdict(float, {name: float(seconds) for seconds, name in lines})
        out, items[:] = parted(items, took, self._at_most)
        config.hook.pytest_deselected(items=[item for unit in out for item in unit])
        heavy, light = parted(items, took, HEAVY_S)
        kernel = [unit for unit in heavy if unit[0].get_closest_marker("emu")]
        pure = [unit for unit in heavy if not unit[0].get_closest_marker("emu")]
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        items[:] = dealt(heads(kernel, pure, workers, lambda unit: weight(unit, took)), light)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and end of every attempt."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Workers of xdist report to the process that started them, which alone writes."""
        if self._times and not hasattr(session.config, "workerinput"):
            with Path(self._times).open("a") as file:
                file.writelines(f"{seconds:.1f} {name}\n" for name, seconds in self._seconds.items())


def shared_by(item: pytest.Item) -> str:
    """What this test shares with others: the browser, or what is made once for its file. Empty for nothing."""
    if item.get_closest_marker("browser"):
        return "browser"
    made = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return str(item.path) if any(each[-1].scope == "module" for each in made if each) else ""


def weight(unit: Unit, took: Mapping[str, float]) -> float:
    """Seconds of all of it, as far as they are known."""
    return sum(took[item.nodeid] for item in unit)


def parted(items: Unit, took: Mapping[str, float], most: float) -> tuple[list[Unit], Unit]:
    """Those that took more than `most`, with those that share with them, the heaviest first, and the others."""
    units: dict[str, Unit] = defaultdict(list)
    for item in items:
        units[shared_by(item) or item.nodeid].append(item)
    heavy = [unit for unit in units.values() if any(took[item.nodeid] > most for item in unit)]
    chosen = {item.nodeid for unit in heavy for item in unit}
    return sorted(heavy, key=lambda unit: -weight(unit, took)), [item for item in items if item.nodeid not in chosen]


def heads(kernel: list[Unit], pure: list[Unit], workers: int, heavy: Callable[[Unit], float]) -> list[Unit]:
    """What each worker begins with: each unit goes to whom has least to do yet. The kernel's are for the first half."""
    found: list[Unit] = [[] for _ in range(workers)]
    first = workers // 2
    for units, mine in ((kernel, found[:first] or found), (pure, found[first:])):
        for unit in units:
            min(mine, key=heavy).extend(unit)
    return found


def dealt(heavy: list[Unit], light: Unit) -> Unit:
    """A stretch for each worker, of the length that worksteal gives it, headed by its heavy ones."""
    found: Unit = []
    rest, left = iter(light), sum(map(len, heavy)) + len(light)
    for worker, mine in enumerate(heavy):
        length = left // (len(heavy) - worker)
        left -= length
        found += [*mine, *islice(rest, max(0, length - len(mine)))]
    return found
