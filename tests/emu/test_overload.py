"""A machine that has no time for the run must not be taken for a network that failed, nor for one that did not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrc_testbed.testbed.cpus import usable_cpus

from .runs import Run

pytestmark = [pytest.mark.alone, pytest.mark.makes_late]

BURNERS_A_CPU = 8


@contextmanager
def burners() -> Iterator[None]:
    """Processes that want every CPU, until the end of the block."""
    count = BURNERS_A_CPU * usable_cpus()
    started = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


@pytest.mark.nightly
def test_a_run_on_an_overloaded_machine_is_inconclusive(tmp_path: Path) -> None:
    """Two hosts with little to send get their turns even here, but the kernel's forwarding waits too.

    The steps take 8 s, so that the first second, in which nothing else wants a CPU, is a small part of them: CPU
    pressure must pass 75 %.
    """
    run = Run(tmp_path, steps=60)
    run.wait_until_step(1)
    with burners():
        status = run.finish()
    assert (status, run.verdict["verdict"]) == (3, "inconclusive"), run.output
    assert not run.verdict["fidelity"]["ok"]
    assert {check["status"] for check in run.verdict["checks"]} == {"inconclusive"}
