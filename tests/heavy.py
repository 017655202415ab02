"""The heaviest tests start first: one that starts last keeps one worker busy while the others have nothing left.

tests/heavy.txt has the seconds of each test that takes 0.3 or more, as the last run that wrote it measured them. A test
that is not in it counts as light, which costs time and nothing else.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from itertools import islice
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("heavy.txt")
HEAVY_S = 2.0
"""Lighter ones stay beside those of their file, which share what is made for a file."""


class HeavyFirst:
    """Orders what was collected, and writes down what each test took."""

    def __init__(self, times: str | None, at_most: float | None) -> None:
        """`times`: the file to which a line for each test is appended, seconds and name. `at_most`: tests that took
        longer are left out."""
        self._times = times
        self._at_most = math.inf if at_most is None else at_most
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Worksteal deals out as many stretches of the list as there are workers: the heavy ones go to their heads.
        Those on the real kernel to the first half of the workers alone, or they would make each other late."""
        lines = (line.split(" ", 1) for line in FILE.read_text().splitlines())
        took = defaultdict(float, {name: float(seconds) for seconds, name in lines})
        config.hook.pytest_deselected(items=[item for item in items if took[item.nodeid] > self._at_most])
        items[:] = [item for item in items if took[item.nodeid] <= self._at_most]
        heavy = [item for item in items if took[item.nodeid] >= HEAVY_S]
        heavy.sort(key=lambda item: -took[item.nodeid])
        kernel = [item for item in heavy if item.get_closest_marker("emu")]
        pure = [item for item in heavy if not item.get_closest_marker("emu")]
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        items[:] = dealt(heads(kernel, pure, workers), [item for item in items if took[item.nodeid] < HEAVY_S])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and end of every attempt."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Workers of xdist report to the process that started them, which alone writes."""
        if self._times and not hasattr(session.config, "workerinput"):
            with Path(self._times).open("a") as file:
                file.writelines(f"{seconds:.1f} {name}\n" for name, seconds in self._seconds.items())


def heads(kernel: list[pytest.Item], pure: list[pytest.Item], workers: int) -> list[list[pytest.Item]]:
    """The heavy ones of each worker, the heaviest first."""
    first = workers // 2
    if not first:
        return [kernel + pure]
    others = workers - first
    return [kernel[one::first] for one in range(first)] + [pure[one::others] for one in range(others)]


def dealt(heavy: list[list[pytest.Item]], light: list[pytest.Item]) -> list[pytest.Item]:
    """A stretch for each worker, of the length that worksteal gives it, headed by its heavy ones."""
    found: list[pytest.Item] = []
    rest, left = iter(light), sum(map(len, heavy)) + len(light)
    for worker, mine in enumerate(heavy):
        length = left // (len(heavy) - worker)
        left -= length
        found += [*mine, *islice(rest, max(0, length - len(mine)))]
    return found
