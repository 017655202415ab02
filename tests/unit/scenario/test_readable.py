"""What is readable of a file with mistakes, and that a sound file is read once."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.rules.readable import read

WORK: list[Any] = [
    {"write": {"from": "h0", "to": "h1", "for": "1s"}},
    {"write": {"from": "h0"}},
    {"latency": {"from": "h2", "to": "h3", "iterations": 5}},
]


def test_a_sound_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[object] = []
    once = Scenario.model_validate
    monkeypatch.setattr(Scenario, "model_validate", lambda data: (reads.append(data), once(data))[1])
    load_scenario_text("name: x\nworkload: [{write: {from: h0, to: h1, for: 5s}}]\n")
    assert len(reads) == 1


def test_entries_keep_their_numbers_when_others_are_lost() -> None:
    file, errors = read(
        {"name": "x", "workload": WORK, "faults": [{}, {"at": "1s", "link-down": "h0:p0-t0-0", "for": "1s"}]}, Scenario
    )
    assert file is not None
    assert file.lost == {("workload", 1), ("faults", 0)}
    assert sorted(file.flows) == [0, 2]
    assert sorted(file.faults) == [1]
    assert {each["loc"][:2] for each in errors} == {("workload", 1), ("faults", 0)}


@pytest.mark.parametrize("wrong", [{"workload": 5}, {"workload": []}, {"name": 7}, {}, {"workload": [{"nothing": 1}]}])
def test_what_is_required_and_lost_has_a_stand_in_that_no_rule_sees(wrong: dict[str, Any]) -> None:
    file, errors = read({"seed": 3, **wrong}, Scenario)
    assert errors
    assert file is not None
    assert file.scenario.seed == 3
    assert not file.flows
    assert not file.steps


@pytest.mark.parametrize("fabric", [7, {"planes": "four"}, {"nothing": 1}])
def test_a_wrong_fabric_names_nothing(fabric: Any) -> None:
    file, _ = read({"name": "x", "workload": WORK[:1], "fabric": fabric}, Scenario)
    assert file is not None
    assert not file.whole_fabric


def test_a_wrong_switch_leaves_the_names_of_the_fabric() -> None:
    file, _ = read({"name": "x", "workload": WORK[:1], "fabric": {"planes": 2, "switch": {"trim": []}}}, Scenario)
    assert file is not None
    assert file.whole_fabric
    assert file.scenario.fabric.planes == 2
    assert file.loses("fabric", "switch")
