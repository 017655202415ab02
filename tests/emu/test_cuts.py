"""A T0-T1 link is cut and nobody is told: how long senders go on sending into it, over hundreds of paths."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.cuts import ROUNDS, SCENARIO, TARGET, read_cuts, settings
from mrc_testbed.testbed.checks.statistics import statistic
from tests.emu.figures import run_that_kept_time

pytestmark = pytest.mark.alone


@pytest.mark.timeout(240)
@pytest.mark.parametrize("rounds", [3, pytest.param(ROUNDS, marks=pytest.mark.nightly)])
def test_half_of_the_cut_paths_carry_no_data_after_three_round_trips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None], rounds: int
) -> None:
    record = run_that_kept_time(SCENARIO, tmp_path, *settings(rounds))
    cuts = read_cuts(record)
    with capsys.disabled():
        sys.stdout.write(f"\n{cuts.table()}\n")
    exposure = {name: statistic(cuts.exposure, name) for name in ("p50", "p99", "max")}
    record_property("cut to last packet sent, base RTTs", exposure)
    assert cuts.median_exposure <= TARGET
    # Every sender was busy on every path, so hardly one can have been cut unnoticed.
    assert len(cuts.recovery) >= 0.95 * cuts.paths_cut
    assert len(cuts.exposure) >= 0.9 * cuts.paths_cut >= 25 * rounds
    assert cuts.unexplained <= 0.01 * cuts.paths_cut
