"""Stories on the real kernel, shortened: `make stories` runs them all as they are shipped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.emu.figures import events, shipped_run

pytestmark = [pytest.mark.timeout(120), pytest.mark.alone]


def test_two_jobs_do_not_disturb_each_other(tmp_path: Path) -> None:
    changes = ("workload.0.train.steps=8", "workload.1.train.steps=4")
    moved = {"from 1s to 9s": "from 500ms to 3s", "from 12s to 19s": "from 4500ms to 6500ms"}
    shipped_run("stories/two-jobs", tmp_path, *changes, moved=moved)


def test_a_transfer_over_256_paths_leaves_sixteen_dead_ones(tmp_path: Path) -> None:
    changes = ("workload.0.write.for=7s", "faults.0.at=2s", "faults.0.for=2s")
    record = shipped_run("stories/hundreds-of-paths", tmp_path, *changes)
    left = Counter((one["plane"], one["uplink"]) for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD")
    assert len(left) == 16
