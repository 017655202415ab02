"""The schedule of a run is the one in its plan.json, and can be run again from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from mrc_testbed.testbed.app import run as runner
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.commands.replay import replay
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.report.facts import fault_rows
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.rundir.planned import plan_document, recorded_scenario
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.topos.plan import build_plan
from tests.unit.checks.test_folder import RunFolder

TEXT = """\
name: small
seed: 5
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
endpoint: {icrc: true}
faults:
  - {at: cold-start, port-flap: any 2 of NIC links, period: 200ms, count: 3, jitter: 30%, name: ports}
  - {at: 1s, ev-loss: p0-t1-1, from: h0, to: h2, loss: 50%, for: 1s}
  - {at: 1s, deny: p1, for: 1s, hosts: [h0, h3]}
  - {at: 1s, for: 5s, chaos: {link-rate: {times: 2/s, rate: 5mbit}, corrupt: 1/s, switch-reboot: 1/s}, name: storm}
"""
Document = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a run leaves that is needed to run it again."""
    scenario = load_scenario_text(TEXT)
    (tmp_path / "scenario.yaml").write_text(TEXT)
    document = plan_document(build_plan(scenario.shape()), scenario.occurrences)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    return tmp_path


def changed(folder: Path, change: Callable[[Document], object]) -> None:
    document = json.loads((folder / "plan.json").read_text())
    change(document)
    (folder / "plan.json").write_text(json.dumps(document))


def test_every_field_of_every_occurrence_comes_back(folder: Path) -> None:
    scenario = load_scenario_text(TEXT)
    again = recorded_scenario(folder)
    assert len({occurrence.kind for occurrence in scenario.occurrences}) == 6
    assert again.occurrences == scenario.occurrences
    assert (again.seed, again.last_heal_ns) == (scenario.seed, scenario.last_heal_ns)


def test_the_schedule_that_was_recorded_counts_not_what_would_be_drawn(folder: Path) -> None:
    by_hand = Occurrence("by-hand", 0, KINDS["link-down"], ("p0-t0-0:p0-t1-0",), 10**9, 2 * 10**9, ("p0-t0-0:p0-t1-0",))
    changed(folder, lambda document: document["faults"].append(by_hand.as_record()))
    changed(folder, lambda document: document["faults"].pop(0))
    scenario = load_scenario_text(TEXT)
    assert recorded_scenario(folder).occurrences == (*scenario.occurrences[1:], by_hand)
    assert scenario.with_occurrences([by_hand]).needs_port_program == ""
    assert scenario.with_occurrences([by_hand]).last_heal_ns == 2 * 10**9


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "scenario.yaml").unlink(), "has no scenario.yaml: not a run folder"),
        (lambda folder: (folder / "plan.json").unlink(), "has no plan.json: the run ended before it had a plan"),
        (lambda folder: (folder / "plan.json").write_text("{"), r"plan.json: cannot be read"),
        (lambda folder: (folder / "plan.json").write_text("[]"), r"plan.json: cannot be read: it is not a plan"),
        (
            lambda folder: (folder / "scenario.yaml").write_text(TEXT.replace("t1: 2", "t1: 3")),
            "does not fit its scenario.yaml, or another version wrote it; run the scenario.yaml",
        ),
        (
            lambda folder: changed(folder, lambda document: document.pop("faults")),
            "no schedule to replay: there is none",
        ),
        (
            lambda folder: changed(folder, lambda document: document["faults"][2].pop("links")),
            "cycle 2: links is incomplete",
        ),
        (
            lambda folder: changed(folder, lambda document: document["faults"][2].update(begin_ns="soon")),
            "cycle 2: begin_ns: Input should be a valid integer",
        ),
        (
            lambda folder: changed(folder, lambda document: document["faults"][1].update(kind="earthquake")),
            "cycle 1: there is no kind earthquake",
        ),
        (
            lambda folder: changed(folder, lambda document: document["faults"][1].update(links=["h9:p0-t0-0"])),
            "cycle 1: h9:p0-t0-0 is not in this fabric",
        ),
        (
            lambda folder: changed(folder, lambda document: document["faults"].append(document["faults"][0])),
            "two cycles of a fault have the same number",
        ),
        (
            lambda folder: changed(folder, lambda document: document["faults"][0].update(end_ns=0)),
            "cycle 0: end_ns: it must end after it begins",
        ),
    ],
)
def test_a_folder_that_cannot_be_run_again(folder: Path, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder)
    with pytest.raises(UsageError, match=says) as caught:
        recorded_scenario(folder)
    assert "\n" not in str(caught.value)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such run folder"):
        recorded_scenario(tmp_path / "none")


def test_the_command_hands_the_schedule_on(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []

    def run_scenario(scenario: Scenario, out: Path, quiet: bool, *_: Any, replays: Path, **__: Any) -> RunOutcome:
        seen.append((scenario.occurrences, out, quiet, replays))
        return RunOutcome(ExitCode.INCONCLUSIVE, 1.0)

    monkeypatch.setattr(runner, "run_scenario", run_scenario)
    with pytest.raises(typer.Exit) as ended:
        replay(folder, out=tmp_path / "out", quiet=True)
    assert ended.value.exit_code == 3
    assert seen == [(load_scenario_text(TEXT).occurrences, tmp_path / "out", True, folder)]


def test_checks_and_summary_go_by_the_schedule_that_was_run(tmp_path: Path) -> None:
    """One fault more than in the scenario, as when somebody does one by hand."""
    folder = RunFolder().write(tmp_path)
    record = load_record(folder)
    (cut,) = record.occurrences
    more = replace(cut, fault="by-hand", model=KINDS["switch-reboot"], targets=("p0-t1-1",))
    (folder / "plan.json").write_text(json.dumps(plan_document(record.plan, [cut, more])))
    again = load_record(folder)
    assert again.occurrences == (cut, more)
    assert [(row.name, row.what, row.when) for row in fault_rows(again)][1] == (
        "by-hand",
        "switch-reboot p0-t1-1",
        "not injected",
    )
    (folder / "plan.json").write_text(json.dumps({"faults": [{"at_ns": 3}]}))
    with pytest.raises(RecordError, match="its schedule cannot be read: cycle 0: "):
        load_record(folder)
