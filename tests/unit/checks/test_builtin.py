"""Which checks of every run there are beside expectations, and what each says at its bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks import builtin
from mrc_testbed.testbed.checks.builtin import builtin_checks
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.rundir.lines import Party
from tests.unit.checks.test_folder import SCENARIO, RunFolder, at
from tests.unit.checks.test_program_ends import WELL, run_of

PASS, FAIL, OPEN = Status.PASS, Status.FAIL, Status.INCONCLUSIVE
ALONE = [
    ("== 0", True),
    ("<= 0", True),
    ("< 1", True),
    ("<= 1", False),
    ("< 2", False),
    ("!= 1", False),
    (">= 0", False),
]
"""Bounds, and whether they hold for 0 alone."""


def checks(record: Any) -> dict[str, CheckResult]:
    return {check.name: check for check in builtin_checks(record)}


@pytest.mark.parametrize(("bound", "alone"), ALONE)
@pytest.mark.parametrize(
    ("metric", "name"), [("unfinished", builtin.FINISHED), ("bytes_wrong", builtin.INTACT)], ids=lambda each: each
)
def test_an_expectation_takes_the_place_of_a_check_if_it_holds_for_nothing_else(
    tmp_path: Path, metric: str, name: str, bound: str, alone: bool
) -> None:
    unit = " B" if metric == "bytes_wrong" and not bound.endswith("0") else ""
    folder = RunFolder(expect=[f"{metric} {bound}{unit}"])
    assert (name not in checks(load_record(folder.write(tmp_path)))) is alone


@pytest.mark.parametrize(("bound", "alone"), ALONE)
def test_one_of_programs_does_too(tmp_path: Path, bound: str, alone: bool) -> None:
    record = run_of(tmp_path, {"h0": WELL, "h1": WELL}, expect=[f"programs_failed {bound}"])
    assert (builtin.PROGRAMS_ENDED not in checks(record)) is alone


@pytest.mark.parametrize(
    "line", ["unfinished of h1 == 0", "bytes_wrong == 0 during cut", "warning: unfinished == 0", "steps_done >= 0"]
)
def test_one_of_a_part_does_not(tmp_path: Path, line: str) -> None:
    found = checks(load_record(RunFolder(expect=[line]).write(tmp_path)))
    assert {builtin.FINISHED, builtin.MOVED, builtin.INTACT} <= found.keys()


@pytest.mark.parametrize(("moved", "status"), [(0, FAIL), (1, PASS), (2, PASS)])
def test_one_byte_is_data_that_moved(tmp_path: Path, moved: int, status: Status) -> None:
    folder = RunFolder()
    for row in folder.completions:
        row[4] = 0
    folder.completions[3][4] = moved
    check = checks(load_record(folder.write(tmp_path)))[builtin.MOVED]
    assert (check.status, check.observed, check.unit) == (status, moved / 2**20, "MiB")


@pytest.mark.parametrize(("name", "count"), [("gateway_in_bytes", 1), ("verbs_in_bytes", 1), ("other_in_bytes", 0)])
def test_what_hosts_carried_for_programs_moved_too(tmp_path: Path, name: str, count: int) -> None:
    record = run_of(tmp_path, {"h0": WELL, "h1": WELL})
    record.counters["h1"][name] = 1  # type: ignore[index]
    check = checks(record)[builtin.MOVED]
    assert (check.status, check.observed) == (PASS if count else FAIL, count / 2**20)
    assert check.why == ("" if count else "no program sent anything to another host over mrc0")
    assert check.who is (Party.NETWORK if count else Party.PROGRAM)


@pytest.mark.parametrize(("failed", "said"), [(4, "h0, h1, h2, h3 did not"), (5, "h0, h1, h2, h3 and 1 more did not")])
def test_four_programs_that_failed_are_named(tmp_path: Path, failed: int, said: str) -> None:
    hosts = [f"h{number}" for number in range(6)]
    names = ", ".join(hosts)
    ends = {host: (at(8), int(number < failed), 0) for number, host in enumerate(hosts)}
    run_of(tmp_path, ends)
    text = (tmp_path / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(text.replace("[h0, h1]", f"[{names}]").replace("per_t0: 2", "per_t0: 3"))
    check = checks(load_record(tmp_path))[builtin.PROGRAMS_ENDED]
    assert (check.status, check.observed, check.expected, check.who) == (FAIL, failed, "== 0", Party.PROGRAM)
    assert check.why.startswith(said)


def without(folder: RunFolder, host: str, steps: int) -> None:
    """The last steps of a host are lacking."""
    folder.completions = [row for row in folder.completions if row[0] != host or row[1] < 8 - steps]


@pytest.mark.parametrize(
    ("lacking", "observed", "why"),
    [
        ({}, 8, ""),
        ({"h1": 1}, 7, "1 of 4 ranks did not; h1 ended after 7"),
        ({"h1": 1, "h2": 3}, 5, "2 of 4 ranks did not; h2 ended after 5"),
        ({"h0": 3, "h3": 3}, 5, "2 of 4 ranks did not; h0 ended after 5"),
    ],
)
def test_the_rank_that_lacks_most_is_shown(tmp_path: Path, lacking: dict[str, int], observed: int, why: str) -> None:
    folder = RunFolder()
    for host, steps in lacking.items():
        without(folder, host, steps)
    check = checks(load_record(folder.write(tmp_path)))[builtin.FINISHED]
    status = FAIL if lacking else PASS
    assert (check.status, check.observed, check.expected, check.why) == (status, observed, "== 8", why)
    assert check.who is (Party.NETWORK if lacking else Party.SCENARIO)


@pytest.mark.parametrize(("late_ms", "good"), [(0, True), (249, True), (251, False)])
@pytest.mark.parametrize("op", ["inject", "heal"])
def test_a_fault_may_be_late_by_a_quarter_of_a_second(tmp_path: Path, op: str, late_ms: int, good: bool) -> None:
    folder = RunFolder()
    for line in folder.history:
        if line["op"] == op and line["type"] == "ok":
            line["t_ns"] = at((3.5 if op == "inject" else 4.5) + late_ms / 1000)
    check = checks(load_record(folder.write(tmp_path)))[builtin.FAULTS_DONE]
    done = {"inject": "injected", "heal": "healed"}[op]
    assert check.status is (PASS if good else OPEN)
    assert check.late is not good
    assert check.why == ("" if good else f"cut cycle 0: {done} {late_ms} ms late")
    assert (check.observed, check.expected, check.who) == (1, "== 1", Party.MACHINE)


@pytest.mark.parametrize(("late_ms", "good"), [(499, True), (501, False)])
def test_or_by_five_round_trips(tmp_path: Path, late_ms: int, good: bool) -> None:
    folder = RunFolder(scenario=SCENARIO.replace("rtt: 20ms", "rtt: 100ms"))
    for line in folder.history:
        if line["op"] == "inject" and line["type"] == "ok":
            line["t_ns"] = at(3.5 + late_ms / 1000)
    check = checks(load_record(folder.write(tmp_path)))[builtin.FAULTS_DONE]
    assert (check.status is PASS) is good
