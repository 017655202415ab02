"""What is random here comes from one seed, which the head of the output shows: `--abuse-seed` repeats it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.abuse.command import command

SCENARIO = Path(__file__).parents[1] / "unit" / "small_virtual.yaml"
Rounds = Callable[[int], Iterator[Random]]
_SHARES = 5
"""Tests that go on with `--abuse-minutes`: each has this part of the time."""


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Rounds:
    """Chances for a number of rounds, or for as long as `--abuse-minutes` says; each knows nothing of the others."""
    seed, minutes = request.config.getoption("--abuse-seed"), request.config.getoption("--abuse-minutes")
    name = request.node.name

    def each(usual: int) -> Iterator[Random]:
        until, number = time.monotonic() + minutes * 60 / _SHARES, 0
        while number < usual or time.monotonic() < until:
            print(f"round {number} of --abuse-seed {seed}")  # noqa: T201 - shown of a test that fails
            yield Random(f"{seed}/{name}/{number}")
            number += 1

    return each


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> Rounds:
    """As `rounds`; `--abuse-moments` says how many."""
    seed, most = request.config.getoption("--abuse-seed"), request.config.getoption("--abuse-moments")
    name = request.node.name

    def each(usual: int) -> Iterator[Random]:
        for number in range(most or usual):
            print(f"moment {number} of --abuse-seed {seed}")  # noqa: T201 - shown of a test that fails
            yield Random(f"{seed}/{name}/{number}")

    return each


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in virtual time, with captures."""
    out = tmp_path_factory.mktemp("real")
    capture = "capture=[{links: 'p0-t0-*:*', around: all}]"
    ended = command("run", str(SCENARIO), "--virtual", "--set", capture, "--out", str(out), "--quiet")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return next(path for path in out.iterdir() if not path.is_symlink())
