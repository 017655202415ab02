"""Formulas of the benchmark over a hand-made run, reckoned by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.bench.measures import FORMULAS, STEADY_STEPS
from mrc_testbed.testbed.bench.measuring import axis_number
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.windows import NoData
from tests.unit.checks.test_folder import SCENARIO, RunFolder
from tests.unit.checks.test_outage import LOADS, samples

ROOFLINE_S = 0.1 + (2 << 20) * 8 * 1.5 / 50e6
"""100 ms of computation, and 2 MiB in a ring of four ranks, each with two ports of 25 Mb/s."""
PAYLOAD_S = 0.1 + (ROOFLINE_S - 0.1) * 4238 / 4096
LATENCY_S = PAYLOAD_S + 3 * 0.025
"""Six phases, each half a round trip of 25 ms."""


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    """Eight steps in 8.3 s; those under the fault take 1.2 s and 1.1 s, all others 1 s."""
    folder = RunFolder().write(tmp_path)
    (folder / "samples.csv").write_text(samples(LOADS))
    return load_record(folder)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("jct_ratio_raw", [8.3 / 8 / ROOFLINE_S]),
        ("jct_ratio_payload", [8.3 / 8 / PAYLOAD_S]),
        ("jct_ratio_latency", [8.3 / 8 / LATENCY_S]),
        ("job_time", [8300]),
        ("step_times", [1e6, 1e6, 1e6, 1.2e6, 1.1e6, 1e6, 1e6, 1e6]),
        ("failure_overhead", [1.2]),
        ("drift", [1.0]),
        ("uplink_fairness", [220**2 / (2 * (150**2 + 70**2))]),
        ("uplink_imbalance", [150 / 110]),
    ],
)
def test_by_hand(record: RunRecord, name: str, values: list[float]) -> None:
    assert list(FORMULAS[name](record)) == pytest.approx(values, rel=4e-3)


def test_the_bus_bandwidth_of_a_collective(tmp_path: Path) -> None:
    text = SCENARIO.replace(
        "train: {steps: 8, compute: 100ms, allreduce: 2MiB}", "all-gather: {size: 2MiB, iterations: 8}"
    )
    folder = RunFolder(scenario=text)
    folder.durations = [1.0]
    record = load_record(folder.write(tmp_path))
    gbit = (2 << 20) * 8 * 0.75 / 1e9
    found = list(FORMULAS["bus_bandwidth"](record))
    assert found[-1] == pytest.approx(gbit, rel=1e-3)
    assert FORMULAS["bus_efficiency"](record)[-1] == pytest.approx(gbit / 0.05, rel=1e-3)


def test_the_rank_of_a_failure_needs_a_hundred_steady_steps(record: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(NoData, match=f"there are 5 steady steps; a P99 needs {STEADY_STEPS}"):
        FORMULAS["failure_rank"](record)
    steady = [0.01 + 0.0001 * number for number in range(150)]
    folder = RunFolder(scenario=SCENARIO.replace("steps: 8", "steps: 450"), durations=[*[0.01] * 300, 3.0, *steady[1:]])
    (tmp_path / "long").mkdir()
    (rank,) = FORMULAS["failure_rank"](load_record(folder.write(tmp_path / "long")))
    assert rank == 100
    folder = RunFolder(scenario=SCENARIO.replace("steps: 8", "steps: 450"), durations=[*steady, *[0.0125] * 300])
    (tmp_path / "even").mkdir()
    (rank,) = FORMULAS["failure_rank"](load_record(folder.write(tmp_path / "even")))
    assert 0 < rank < 99


def test_what_a_run_lacks_is_not_measured(tmp_path: Path) -> None:
    record = load_record(RunFolder().write(tmp_path))
    with pytest.raises(NoData, match="read less than twice"):
        FORMULAS["uplink_fairness"](record)


def test_axes_are_numbers() -> None:
    assert (axis_number(3), axis_number("64KiB"), axis_number("1MiB")) == (3, 1 << 16, 1 << 20)
