"""Stories on the real kernel, shortened: `make stories` runs them all as they are shipped."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from mrc_testbed.testbed.report.frames.run import load_run
from mrc_testbed.testbed.rundir.results import run_folders
from tests.emu.figures import events, shipped_run
from tests.emu.runs import COMMAND
from tests.retry import Inconclusive

pytestmark = [pytest.mark.timeout(120), pytest.mark.alone, pytest.mark.nightly]


CELLS = ("mrc", "tcp", "roce-lossy-timeout-17", "roce-lossy-timeout-16")


def test_a_flap_kills_one_job_stalls_two_and_costs_mrc_little(tmp_path: Path) -> None:
    """As it is shipped: the flap has to be as long as the retries, and each cell is judged."""
    command = [*COMMAND, "run", "stories/one-flap-kills-a-job", "--out", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = {run.scenario.variant: run for run in map(load_run, run_folders(tmp_path))}
    if late := [cell for cell in CELLS if runs[cell].verdict == "inconclusive"]:
        raise Inconclusive(f"{late}: {ran.stdout}")
    assert {cell: runs[cell].verdict for cell in CELLS} == dict.fromkeys(CELLS, "pass"), ran.stdout


def test_a_transfer_over_256_paths_leaves_sixteen_dead_ones(tmp_path: Path) -> None:
    changes = ("workload.0.write.for=7s", "faults.0.at=2s", "faults.0.for=2s")
    record = shipped_run("stories/hundreds-of-paths", tmp_path, *changes)
    left = Counter((one["plane"], one["uplink"]) for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD")
    assert len(left) == 16
