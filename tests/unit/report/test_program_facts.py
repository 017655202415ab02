"""What a person is told of programs of the user, and of one that took the machine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.checks.advice import greedy_program
from mrc_testbed.testbed.report.program_facts import program_headline, program_line
from mrc_testbed.testbed.rundir.tables import ProgramEnd

S = 10**9


def record(*cpu_s: float, failed: str = "") -> Any:
    """Each program runs for 10 s on a machine of two CPUs."""
    hosts = [f"h{number}" for number in range(len(cpu_s))]
    ends = [
        ProgramEnd(host, "mine", 0, 10 * S, int(host == failed), 0, round(each * S))
        for host, each in zip(hosts, cpu_s, strict=True)
    ]
    entry = SimpleNamespace(command_of=lambda host: ("python3", f"{host}.py"))
    job = SimpleNamespace(name="mine", entry=entry, host_names=lambda _shape: hosts)
    failures = [SimpleNamespace(host=failed, reason="python3 ended with status 1: no memory")] if failed else []
    scenario = SimpleNamespace(jobs=[job], job=SimpleNamespace(programs=[job]), shape=lambda: None)
    return SimpleNamespace(scenario=scenario, programs=ends, environment={"cpus": 2}, program_failures=failures)


@pytest.mark.parametrize(
    ("cpu_s", "told"),
    [
        ((1, 2), ""),
        ((12, 4), "programs took 80% of the machine's CPU time, python3 of h0 the most (60%)"),
        ((30, 10), "programs took 100% of the machine's CPU time, python3 of h0 the most (75%)"),
        ((), ""),
    ],
)
def test_a_program_that_took_much_of_the_machine_is_named(cpu_s: tuple[float, ...], told: str) -> None:
    assert greedy_program(record(*cpu_s)) == told


def test_how_programs_ended() -> None:
    good = record(1, 2)
    assert program_headline(good, good.scenario.jobs[0]) == "2 programs ended with 0, the last after 10 s"
    bad = record(1, 2, failed="h1")
    told = "1 of 2 programs ended with 0, the last after 10 s, 15% of the machine's CPU time; h1: python3 ended with"
    assert program_line(bad, bad.scenario.jobs[0]) == f"{told} status 1: no memory"
