"""`mrc-testbed map`: on runs of today, of old, of RoCE, on cases without a truth, and on what is none of these."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.fabric_map import map_folder
from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.answers import AnswerState, read_answers
from mrc_testbed.testbed.incidents.case import CaseFolder, make_case
from mrc_testbed.testbed.incidents.draw import draw_case
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.calls import Call
from tests.unit.checks.test_folder import RunFolder
from tests.unit.recorded import record_run

BROKEN = "p1-t0-0:p1-t1-2"
TEXT = """\
name: mapped
world: virtual
seed: 5
fabric: {planes: 2, t0_groups: 3, t1: 3, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - train: {hosts: [h0, h2, h4, h1, h3, h5], steps: 25, compute: 20ms, allreduce: 256KiB}
faults:
  - {at: 1s, one-way: "p1-t0-0:p1-t1-2", direction: up, for: 3s, name: grey}
"""
ROCE = TEXT.replace("seed: 5", "seed: 5\ntransport: roce")


def virtual_run(out: Path, text: str = TEXT) -> Path:
    outcome = run_scenario(load_scenario_text(text), out, quiet=True)
    assert outcome.folder is not None
    return outcome.folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return virtual_run(tmp_path_factory.mktemp("map"))


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> CaseFolder:
    made = make_case(draw_case(11, "link-down", 6.0), tmp_path_factory.mktemp("cases"))
    observe(made)
    return made


def test_a_dead_direction_is_named_with_times_doubts_and_witnesses(call: Call, run: Path) -> None:
    ended = call("map", str(run))
    assert ended.status == 0
    assert all(len(line) <= 80 for line in ended.out.splitlines())
    row = next(line.split() for line in ended.out.splitlines() if line.startswith(BROKEN))
    assert "up" in row
    assert float(row[row.index("s") - 1]) == pytest.approx(1.0, abs=0.1)
    assert "seen by endpoints of" in ended.out
    assert "Precision 1: 1 of 1 accusations were right" in " ".join(ended.out.split())
    assert "Recall 1: 1 of 1 faults were located" in " ".join(ended.out.split())
    assert "False accusations: 0." in " ".join(ended.out.split())


def test_the_document_says_the_same(call: Call, run: Path) -> None:
    found = json.loads(call("map", str(run), "--json").out)
    (spell,) = found["broken"]
    assert (spell["where"], spell["direction"]) == (BROKEN, "up")
    assert spell["since_s"] == pytest.approx(1.0, abs=0.1)
    assert spell["since_s"] <= spell["last_s"] <= spell["known_s"] < spell["well_s"]
    assert spell["p"] > 0.9
    assert found["score"]["precision"] == found["score"]["recall"] == 1
    (fault,) = found["score"]["faults"]
    assert fault["links"] == [BROKEN]
    assert fault["asked"]
    assert 0 < fault["located_ns"] < 1.5e9


def test_a_run_is_named_as_for_other_commands(call: Call, run: Path) -> None:
    assert call("map", "latest", "--out", str(run.parent)).out == call("map", run.name, "--out", str(run.parent)).out


def test_answers_are_lines_that_the_reader_of_answers_takes(call: Call, run: Path) -> None:
    record = map_folder(run, run.parent).record
    lines = call("map", str(run), "--answers").out.splitlines()
    first, *rest = read_answers("map", lines, {*record.plan.node_names, *record.plan.link_by_name}, ())
    assert (first.t_s, first.state) == (0, AnswerState.HEALTHY)
    assert [[*answer.places] for answer in rest] == [[BROKEN], []]


def test_a_run_of_old_is_mapped_from_what_its_hosts_told_in_all(call: Call, tmp_path: Path) -> None:
    """Hosts did not tell of paths then."""
    folder = RunFolder()
    for event in folder.events:
        if event["event"] == "snapshot":
            event["counters"]["data_sent"] = event["t_ns"] // 10_000_000
    old = record_run(tmp_path / "results" / "20260801T000000Z-small", folder)
    ended = call("map", str(old))
    assert (ended.status, ended.err) == (0, "")
    assert "link-down" in ended.out


def test_what_switches_choose_is_said_to_be_unknown(call: Call, tmp_path: Path) -> None:
    folder = virtual_run(tmp_path, ROCE)
    said = " ".join(call("map", str(folder)).out.split())
    assert "Hosts do not choose paths here, switches do (RoCE" in said
    assert "nothing is known: this says of no link that it is well" in said
    assert "Recall unknown: no fault was asked for." in said
    assert json.loads(call("map", str(folder), "--answers").out)["state"] == "unsure"


@pytest.mark.nightly
def test_a_case_is_mapped_without_its_truth(call: Call, case: CaseFolder, tmp_path: Path) -> None:
    alone = tmp_path / case.id
    shutil.copytree(case.folder, alone)
    ended = call("map", str(alone))
    assert ended.status == 0
    assert "truth" not in ended.out
    assert "recision" not in ended.out
    found = json.loads(call("map", str(alone), "-j").out)
    assert found["score"] is None
    assert found["evidence"]["periods"] > 20


def test_a_case_that_was_not_run_is_told_how(call: Call, tmp_path: Path) -> None:
    made = make_case(draw_case(3, "calm", 4.0), tmp_path)
    ended = call("map", str(made.folder))
    assert ended.status == 2
    assert ended.said == [
        f"mrc-testbed: {made.folder}: was not run yet; `mrc-testbed incident observe {made.folder}` does"
    ]


@pytest.mark.parametrize("key", ["start_ns", "end_ns", "fabric", "workload"])
def test_a_damaged_case_is_named_in_one_line(call: Call, case: CaseFolder, tmp_path: Path, key: str) -> None:
    damaged = tmp_path / case.id
    shutil.copytree(case.folder, damaged)
    about = json.loads((damaged / "case.json").read_text())
    (damaged / "case.json").write_text(json.dumps({**about, key: "soon"}))
    ended = call("map", str(damaged))
    assert ended.status == 3
    assert len(ended.said) == 1
    assert f"{damaged}/case.json: " in ended.err
    assert "observe it again" in ended.err


def test_a_run_that_ended_before_its_workload_has_nothing_to_say(call: Call, tmp_path: Path) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / "history.jsonl").write_text("")
    (folder / "completions.csv").unlink()
    ended = call("map", str(folder))
    assert ended.status == 2
    assert ended.said == [
        f"mrc-testbed: {folder}: the run ended before its workload, so nothing was seen; name another run"
    ]


def test_two_forms_at_once_are_refused(call: Call, run: Path) -> None:
    ended = call("map", str(run), "--json", "--answers")
    assert ended.status == 2
    assert ended.said == ["mrc-testbed: --json and --answers: choose one of them"]


def test_what_a_late_machine_shows_does_not_count(call: Call, run: Path, tmp_path: Path) -> None:
    late = tmp_path / run.name
    shutil.copytree(run, late)
    verdict = json.loads((late / "verdict.json").read_text())
    verdict["fidelity"]["caveat"] = "the machine paused"
    (late / "verdict.json").write_text(json.dumps(verdict))
    assert "The machine did not keep time, so nothing of this counts." in call("map", str(late)).out
    assert json.loads(call("map", str(late), "--json").out)["score"]["believed"] is False
