"""`plan --measured` and `plan --scenario`: from runs to a plan, and from a plan to a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.calls import Call
from tests.unit.checks.test_folder import RunFolder
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall, watched
from tests.unit.compare.test_transports import TCP, variant
from tests.unit.recorded import record_run

PLAN = ("plan", "--gpus", "131072", "--planes", "8", "--tiers", "2")


def test_what_a_run_measured_stands_beside_the_parts_list(call: Call, tmp_path: Path) -> None:
    mrc = record_run(tmp_path / "mrc", watched())
    tcp = record_run(tmp_path / "tcp", variant(TCP, stall("h0", "h1", 3.55, 4.4)))
    asked = (*PLAN, "--measured", str(mrc), "--measured", str(tcp), "--rtt", "20us", "--flaps", "14/min")
    (found,) = json.loads(call(*asked, "--json", "-").out)["failures"]
    losses = {each["name"]: each["flap_loss"]["value"] for each in found["recoveries"]}
    assert losses["MRC: recovery, in round trips"] == pytest.approx(100 * 14 / 60 * 0.149 / 0.025 * 20e-6)
    assert losses["TCP, cubic: stall, in seconds"] == pytest.approx(100 * 14 / 60 * 0.85)
    assert {"MRC, 8 RTT of 20 us", "TCP, cubic: stall, in round trips"} <= losses.keys()
    assert found["rests_on"]["MRC: recovery, in round trips"]["mark"] == "measured here"
    shown = call(*asked).out
    assert "MRC: recovery, in round trips" in shown
    assert "mrc: recovery.p100 in 1 of 1 occurrence, 5.96 base RTTs of 25 ms" in shown


def test_a_run_that_is_not_believed_is_refused_and_one_of_several_left_out(call: Call, tmp_path: Path) -> None:
    late = watched()
    assert late.fidelity is not None
    late.fidelity["lateness_p99_ns"]["h0"] = 900_000_000
    folder = record_run(tmp_path / "20261122T000000Z-late", late)
    ended = call(*PLAN, "--measured", str(folder))
    assert (ended.status, len(ended.said)) == (ExitCode.USAGE, 1)
    assert "the machine did not keep time" in ended.err
    record_run(tmp_path / "20261122T000001Z-good", watched())
    ended = call(*PLAN, "--measured", str(tmp_path))
    assert (ended.status, "the machine did not keep time" in ended.err) == (ExitCode.PASS, True)


@pytest.mark.parametrize("run", [break_off(watched()), RunFolder(scenario="name: [")], ids=["died", "damaged"])
def test_one_line_says_why_a_run_is_refused(call: Call, tmp_path: Path, run: RunFolder) -> None:
    ended = call(*PLAN, "--measured", str(run.write(tmp_path)))
    assert (ended.status, ended.out, len(ended.said)) == (ExitCode.USAGE, "", 1)


def test_a_plan_becomes_a_scenario(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    ended = call(*PLAN, "--job", "65536", "--scenario", str(file), "--json", "-")
    assert json.loads(ended.out)["designs"]
    assert str(file) in ended.err
    scenario = load_scenario(file)
    assert (scenario.fabric.planes, scenario.endpoint.ev_active, len(scenario.ranks)) == (8, 8, 4)
    head = file.read_text().partition("\nname:")[0]
    assert "--job 65536" in head
    assert "T0-T1 flaps in a step of the job: 0.7 in the plan, 0.7" in head, "half of 14 a minute, in steps of 6 s"
    assert call("validate", str(file)).err == ""


def test_flaps_and_the_step_decide_how_often_links_fall(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    call(*PLAN, "--flaps", "30/min", "--step", "4s", "--scenario", str(file))
    assert "T0-T1 flaps in a step of the job: 2 in the plan, 2 (" in file.read_text()


def test_a_file_that_is_there_is_kept(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text("mine")
    ended = call(*PLAN, "--scenario", str(file))
    assert (ended.status, ended.out) == (ExitCode.USAGE, "")
    assert "already exists; give another name" in ended.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--gpus 131072 --planes 1", "four tiers planned, and 2 or 3 are made small"),
        ("--gpus 10k --planes 4,8", "2 designs"),
        ("--gpus 131072 --planes 8 --step 0s", "--step 0s"),
    ],
)
def test_what_cannot_be_made_small_is_refused(call: Call, tmp_path: Path, options: str, says: str) -> None:
    ended = call("plan", *options.split(), "--scenario", str(tmp_path / "small.yaml"))
    assert (ended.status, ended.out) == (ExitCode.USAGE, "")
    assert says in ended.err
    assert not (tmp_path / "small.yaml").exists()


def test_designs_beside_the_one_asked_for_do_not_count(call: Call, tmp_path: Path) -> None:
    ended = call("plan", "--planes", "8", "--scenario", str(tmp_path / "small.yaml"))
    assert ended.status == ExitCode.PASS
    assert (tmp_path / "small.yaml").exists()
