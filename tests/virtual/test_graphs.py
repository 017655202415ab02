"""Imported workloads in virtual time, beside what can be reckoned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.interchange.foreign import FAILED_CM, GOAL, INCAST_CM, chakra, node, trace, written

EXACT = "virtual.lateness=0s"


def ran(file: Path, *changes: str) -> tuple[RunRecord, float]:
    """The run of an imported scenario, and how long it was reckoned to take, in ns."""
    scenario = load_scenario(file, changes)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, file.parent / "out", True, PatientConsole(file=nowhere))
    assert outcome.exit_code is ExitCode.PASS
    assert outcome.folder
    return load_record(outcome.folder), scenario.estimate_ns


def imported(file: Path, *options: str) -> Path:
    target = file.parent / "imported.yaml"
    done = CliRunner().invoke(cli.app, ["import", str(file), "-o", str(target), *options])
    assert done.exit_code == 0, done.output
    return target


def longest_ns(record: RunRecord) -> int:
    return max(step.end_ns for step in record.completions) - min(step.begin_ns for step in record.completions)


@pytest.mark.parametrize(("kind", "less"), [(0, 0.06), (2, 0.06), (6, 0.12), (7, 0.06)])
def test_a_collective_of_a_trace_takes_what_is_reckoned(tmp_path: Path, kind: int, less: float) -> None:
    """Of an all-to-all messages are reckoned one after another at both ends, where they go side by side."""
    content = trace(node(1, 4, us=50), node(2, 7, [1], comm_type=kind, comm_size=1 << 20), node(3, 4, [2], us=50))
    record, expected_ns = ran(imported(chakra(tmp_path, dict.fromkeys(range(8), content))), EXACT)
    assert (1 - less) * expected_ns <= longest_ns(record) <= 1.02 * expected_ns
    assert not any(step.bytes_wrong for step in record.completions)


def test_a_schedule_in_goal_repeats(tmp_path: Path) -> None:
    """Both hosts are below one T0, and the longest way is what is reckoned with."""
    file = imported(written(tmp_path, "g.goal", GOAL))
    record, expected_ns = ran(file, EXACT, "workload.0.graph.iterations=5", "workload.0.graph.warm_up=1")
    assert len(record.completions) == 2 * 6
    assert 0.6 * expected_ns <= longest_ns(record) <= expected_ns


@pytest.mark.parametrize("transport", ["roce", "mrc-hashed"])
def test_graphs_run_over_other_transports(tmp_path: Path, transport: str) -> None:
    record, _ = ran(imported(written(tmp_path, "g.goal", GOAL)), f"transport={transport}")
    assert sum(step.bytes for step in record.completions) == 4104


def test_flows_of_a_matrix_take_what_the_receiver_lets_them(tmp_path: Path) -> None:
    """Three senders, one receiver: 16 MB at 46 GB/s."""
    file = imported(
        written(tmp_path, "incast.cm", INCAST_CM.replace("size 4096", "size 4096000").replace("192", "192000"))
    )
    record, _ = ran(file, EXACT)
    last_ns = max(row.begin_ns + row.duration_ns for row in record.flow_times) - min(
        row.begin_ns for row in record.flow_times
    )
    assert last_ns == pytest.approx(16_384_000 / 48.32, rel=0.1)


def test_failed_links_of_a_matrix_carry_nothing_and_flows_arrive(tmp_path: Path) -> None:
    file = imported(written(tmp_path, "f.cm", FAILED_CM.replace("size 4096", "size 1000000")))
    record, _ = ran(file)
    assert len(record.flow_times) == 2
    (down,) = record.occurrences
    assert down.links == ("p0-t1-0:p0-t2-1", "p0-t1-3:p0-t2-2")
