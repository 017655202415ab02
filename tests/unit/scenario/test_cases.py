"""The key `cases`, `--cases`, and sets of variants that bring cases with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario import load_cells, load_recorded, load_scenario, scenario_json_schema
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.scenario.load.shipped import shipped
from mrc_testbed.testbed.scenario.model.variants import shipped_sets, variant_set
from tests.unit.calls import Call
from tests.unit.scenario.test_variants import NONE, VARIANTS, cells, mistakes, written

CASES = (
    "cases: {calm: {faults: []}, cut: {}, slow: {faults: [{at: 1s, link-rate: 'h0:p0-t0-0', rate: 5mbit, for: 1s}]}}"
)
WITH_CASES = [name for name in shipped_sets() if variant_set(name).cases]


def test_a_case_changes_several_keys_and_every_variant_has_all_cases(tmp_path: Path) -> None:
    found = cells(written(tmp_path, CASES, VARIANTS))
    assert list(found)[:4] == ["[spray, calm]", "[spray, cut]", "[spray, slow]", "[hash, calm]"]
    assert len(found) == 9
    hashed = found["[hash, slow]"].scenario
    assert (hashed.variant, hashed.case, hashed.transport, hashed.faults[0].kind) == (
        "hash",
        "slow",
        "roce",
        "link-rate",
    )
    assert not found["[many, calm]"].scenario.faults


def test_cases_need_no_variants_and_options_pick_them_in_order(tmp_path: Path) -> None:
    path = written(tmp_path, CASES)
    assert list(cells(path)) == ["[calm]", "[cut]", "[slow]"]
    assert list(cells(path, Sweep(cases="slow,calm"))) == ["[slow]", "[calm]"]


def test_a_case_keeps_its_name_in_the_text_of_its_cell_and_no_other(tmp_path: Path) -> None:
    text = cells(written(tmp_path, CASES, VARIANTS))["[hash, calm]"].scenario.dump_yaml()
    (tmp_path / "scenario.yaml").write_text(text)
    again = load_recorded(tmp_path)
    assert (again.case, again.variant, again.cases, again.variants) == ("calm", "hash", None, None)


def test_a_set_brings_its_cases_and_they_replace_those_of_the_file(tmp_path: Path) -> None:
    own = tmp_path / "set.yaml"
    own.write_text("mrc: {}\nroce: {transport: roce}\ncases:\n  far: {faults: []}\n")
    assert list(cells(written(tmp_path, CASES), Sweep(against=str(own)))) == ["[mrc, far]", "[roce, far]"]
    own.write_text("mrc: {}\n")
    assert next(iter(cells(written(tmp_path, CASES), Sweep(against=str(own))))) == "[mrc, calm]"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mrc: {}\ncases: 7\n", "set.yaml:2:1: cases"),
        ("mrc: {}\ncases: {}\n", "set.yaml:2:1: cases"),
        ("mrc: {}\ncases:\n  far: {name: x}\n", "set.yaml:3:9: cases.far.name"),
        ("cases: {far: {}}\n", "set.yaml:1:1: variants"),
    ],
)
def test_a_wrong_set_has_the_place_of_each_mistake(tmp_path: Path, text: str, place: str) -> None:
    own = tmp_path / "set.yaml"
    own.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        variant_set(str(own))
    assert str(caught.value.problems[0]).replace(f"{tmp_path}/", "").startswith(place)


def test_a_key_of_both_a_variant_and_a_case_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "variants: {a: {seed: 1}, b: {faults: []}}", CASES)
    (found,) = mistakes(path)
    assert "case calm" in found
    assert "the variant b changes faults as well" in found


def test_a_key_of_a_case_cannot_be_set_or_varied_too(tmp_path: Path) -> None:
    path = written(tmp_path, CASES)
    assert "the case calm changes this key; pick others by --cases" in mistakes(path, NONE, "faults=[]")[0]
    (found,) = mistakes(path, Sweep(matrix=("faults=[]",)))
    assert "the case calm changes faults" in found


@pytest.mark.parametrize(
    ("line", "sweep", "says"),
    [
        (CASES, Sweep(cases="clam"), "--cases clam: there is no case 'clam'; did you mean 'calm'?"),
        ("", Sweep(cases="calm"), "has none; add `--against today`"),
    ],
)
def test_a_case_that_is_not_there(tmp_path: Path, line: str, sweep: Sweep, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        load_cells(written(tmp_path, line), sweep=sweep)


def test_a_case_cannot_vary_what_names_a_cell(tmp_path: Path) -> None:
    path = written(tmp_path, "cases: {calm: {case: other}}")
    assert "case cannot vary" in mistakes(path)[0]


@pytest.mark.parametrize("name", WITH_CASES)
def test_quickstart_runs_against_every_shipped_set_with_cases(name: str) -> None:
    quickstart = next(one.path for one in shipped() if one.name == "quickstart")
    found = load_cells(quickstart, sweep=Sweep(against=name))
    known = variant_set(name)
    assert known.cases
    assert len(found) == len(known.changes) * len(known.cases.changes)


def test_validate_says_once_what_is_true_of_all_cells(tmp_path: Path, call: Call) -> None:
    called = call("validate", str(written(tmp_path, CASES, VARIANTS, "world: virtual")))
    assert called.status == 0, called.err
    assert "9 cells" in called.out


def test_editors_know_the_keys() -> None:
    assert {"cases", "case"} <= scenario_json_schema()["properties"].keys()


def test_a_scenario_with_cases_loads_by_itself(tmp_path: Path) -> None:
    assert list(load_scenario(written(tmp_path, CASES)).cases or ()) == ["calm", "cut", "slow"]
