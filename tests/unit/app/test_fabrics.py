"""The shipped fabrics in virtual time, and the story oversubscribed: their oracles are arithmetic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.finished import FinishedRun
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario


def ran(folder: Path, name: str, *changes: str) -> FinishedRun:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        scenario = load_scenario(name, ["world=virtual", *changes], judged=False)
        return FinishedRun(run_scenario(scenario, folder, True, PatientConsole(file=nowhere)))


@pytest.mark.parametrize(("planes", "rate"), [(2, "25mbit"), (4, "12.5mbit"), (8, "6.25mbit")])
@pytest.mark.nightly(keep=1)
def test_a_host_keeps_all_planes_but_the_one_that_it_lost(planes: int, rate: str, tmp_path: Path) -> None:
    # At 6.25 Mb/s a plane holds 11 packets in 60 ms, the fewest whose shares are known.
    changes = (f"fabric.planes={planes}", f"fabric.port_rate={rate}", f"fabric.rtt={60 if planes == 8 else 40}ms")
    done = ran(tmp_path, "fabrics/dual-plane", *changes)
    during, before = (done.metric(f"flow_goodput.min from {window}") for window in ("4s to 7s", "1s to 3s"))
    assert during / before == pytest.approx((planes - 1) / planes, abs=0.03)


@pytest.mark.parametrize("t1", [1, 2, 4])
@pytest.mark.nightly
def test_flows_have_what_the_uplinks_of_their_hosts_carry(t1: int, tmp_path: Path) -> None:
    family = f"fabric.family={{clos2: {{t0_groups: 2, t1: {t1}, hosts_per_t0: 4}}}}"
    done = ran(tmp_path, "stories/oversubscribed", family)
    line = 4 * 16e6 * 4096 / 4238 / 8
    shares = [done.metric(f"flow_goodput.{figure} from 3s to 19s", "B/s") / line for figure in ("min", "mean", "max")]
    assert shares[1] == pytest.approx(t1 / 4, rel=0.05)
    assert shares == pytest.approx([t1 / 4] * 3, rel=0.1)
    assert done.metric("evs_retired") == 0


@pytest.mark.nightly
def test_rings_of_a_rail_need_no_t1(tmp_path: Path) -> None:
    done = ran(tmp_path, "fabrics/rails", "workload.0.train.steps=2")
    assert done.metric("trims") == 0
    # 2 x 3/4 of 1 MiB at 12.1 Mb/s, and 6 one-way trips.
    assert done.metric("step_time.median", "s") == pytest.approx(1.04 + 6 * 0.04, rel=0.1)
    books = done.record.books
    assert books is not None
    assert sum(counts["in_data"] for (node, _), counts in books.ports.items() if "-t1-" in node) == 0
