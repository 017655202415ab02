"""Adaptive routing as a scenario: what a run is called, what it says of its switches, and what disorder costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.report.frames.run import Run, load_run
from mrc_testbed.testbed.report.transport_words import transport_words
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.generated.oracle import wrong_with

PERMUTATION = """
name: permutation
world: virtual
fabric: {planes: 1, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 25mbit, rtt: 40ms}
transport: roce
roce: {congestion_control: none, buffers: pfc, recovery: lossless}
ecmp: {choose: adaptive}
workload: [{permutation: {for: 1600ms}}]
"""


def ran(folder: Path, *overrides: str) -> Run:
    """A run of it, by whose books nothing is wrong."""
    scenario = load_scenario_text(PERMUTATION, overrides=overrides)
    assert wrong_with(scenario, folder) == []
    return load_run(next(folder.glob("2*-permutation")))


def test_every_flow_has_its_line_and_the_results_say_how(tmp_path: Path) -> None:
    run = ran(tmp_path)
    assert (run.figure("fair_share.min").value or 0) >= 0.95
    assert run.figure("retransmissions").value == 0
    assert transport_words(run.scenario).endswith(", adaptive routing")
    environment = json.loads((run.folder / "environment.json").read_text())
    assert environment["adaptive_routing"].startswith("adaptive routing: a T0 looks each T/13")
    assert "ecmp.choose: adaptive" in environment["uplinks_unknown"]
    assert "uplinks" not in environment
    assert "adaptive routing" in (run.folder / "summary.txt").read_text()


def test_a_hash_gives_two_flows_one_uplink(tmp_path: Path) -> None:
    run = ran(tmp_path, "ecmp.choose=hash")
    assert (run.figure("fair_share.min").value or 1) <= 0.6
    assert "adaptive" not in transport_words(run.scenario)


@pytest.mark.nightly
def test_what_takes_disorder_for_loss_sends_much_again(tmp_path: Path) -> None:
    run = ran(tmp_path, "roce.recovery=selective")
    assert (run.figure("retransmissions").value or 0) >= 300


@pytest.mark.parametrize("choose", ["hash", "adaptive"])
@pytest.mark.nightly(keep=1)
def test_mrc_that_is_hashed_runs_over_both(tmp_path: Path, choose: str) -> None:
    run = ran(tmp_path, "transport=mrc-hashed", f"ecmp.choose={choose}")
    assert ((run.figure("fair_share.min").value or 0) >= 0.9) == (choose == "adaptive")
