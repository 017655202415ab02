"""The key `matrix` and `--matrix`: which cells there are, and what is wrong with which of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.app.batch import Repetitions, load_cases
from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario import in_brackets, load_cells, load_scenario, scenario_json_schema
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.scenario.text.keys import short_names
from tests.unit.calls import Call
from tests.unit.outcomes import outcome

TEXT = """\
name: small
seed: 5 # kept
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload:
  - train: {steps: 3, compute: 100ms, allreduce: 1MiB}
faults:
  - {at: 200ms, link-down: "p1-t0-0:p1-t1-1", for: 100ms, name: cut}
expect: [qp_errors == 0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path, "{fabric.planes: [2, 4], fabric.rtt: [10ms, 20ms]}")


def written(folder: Path, matrix: str) -> Path:
    path = folder / "s.yaml"
    path.write_text(f"{TEXT}matrix: {matrix}\n")
    return path


def names(path: Path, *matrix: str, **rest: Any) -> list[str]:
    return [in_brackets(cell.settings) for cell in load_cells(path, sweep=Sweep(matrix), **rest)]


def mistakes(path: Path, *matrix: str, overrides: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_cells(path, overrides, sweep=Sweep(matrix))
    return [str(problem).replace(f"{path.parent}/", "") for problem in caught.value.problems]


def test_every_combination_is_a_scenario_of_its_own(file: Path) -> None:
    cells = load_cells(file)
    assert [in_brackets(cell.settings) for cell in cells] == [
        *("[planes=2, rtt=10ms]", "[planes=2, rtt=20ms]", "[planes=4, rtt=10ms]", "[planes=4, rtt=20ms]")
    ]
    assert [(cell.scenario.fabric.planes, cell.scenario.fabric.rtt_ns) for cell in cells] == [
        *((2, 10_000_000), (2, 20_000_000), (4, 10_000_000), (4, 20_000_000))
    ]


def test_settings_of_the_endpoint_can_be_swept_and_auto_is_one_of_their_values(tmp_path: Path) -> None:
    path = written(tmp_path, "{endpoint.timeout: [auto, 60ms], endpoint.payload: [4KiB, 512B]}")
    cells = load_cells(path)
    assert [in_brackets(cell.settings) for cell in cells] == [
        *("[timeout=auto, payload=4KiB]", "[timeout=auto, payload=512B]"),
        *("[timeout=60ms, payload=4KiB]", "[timeout=60ms, payload=512B]"),
    ]
    told = [cell.scenario.endpoint.settings() for cell in cells]
    assert [(one["timeout"], one["payload_bytes"]) for one in told] == [(0, 4096), (0, 512), (16, 4096), (16, 512)]
    wrong = mistakes(path, "endpoint.payload=4KiB,3KiB")
    assert [line.partition(": ")[2] for line in wrong] != []
    assert all("must be a path MTU" in line and "payload=3KiB" in line for line in wrong)


def test_what_is_kept_of_a_cell_can_be_run_from_there_and_has_no_matrix(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.yaml"
    kept.write_text(load_cells(file)[2].scenario.dump_yaml())
    assert "# kept" in kept.read_text()
    (again,) = load_cells(kept)
    assert (again.settings, again.scenario.matrix) == ((), None)
    assert (again.scenario.fabric.planes, again.scenario.fabric.rtt_ns) == (4, 10_000_000)


def test_a_file_taken_as_one_scenario_is_itself_without_the_matrix(file: Path) -> None:
    alone = load_scenario(file)
    assert alone.fabric.planes == 2
    assert "matrix" not in alone.dump_yaml()
    assert list(alone.matrix or {}) == ["fabric.planes", "fabric.rtt"]


def test_a_file_without_matrix_is_its_only_cell(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(TEXT)
    (cell,) = load_cells(path)
    assert (cell.settings, cell.scenario.dump_yaml()) == ((), TEXT)


def test_the_option_replaces_an_axis_of_the_file_or_adds_one(file: Path) -> None:
    assert names(file, "fabric.planes=2", "seed=8,9") == [
        *("[planes=2, rtt=10ms, seed=8]", "[planes=2, rtt=20ms, seed=8]"),
        *("[planes=2, rtt=10ms, seed=9]", "[planes=2, rtt=20ms, seed=9]"),
    ]
    assert names(file, "fabric.planes=2", "fabric.rtt=20ms", "fabric.switch=auto,{trim: 2.5}") == [
        *("[planes=2, rtt=20ms, switch=auto]", "[planes=2, rtt=20ms, switch={trim: 2.5}]")
    ]


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ("{}", "s.yaml:9:9: matrix: must have at least one key with its values"),
        ("", "s.yaml:10:1: matrix: has no value; write one, such as {fabric.planes: [1, 2, 4]}"),
        ("[1]", "s.yaml:9:9: matrix: must be a mapping of keys"),
        ("{fabric.planes: 2}", "s.yaml:9:25: matrix.fabric.planes: must be a list of at least one value"),
        ("{fabric.planes: []}", "s.yaml:9:25: matrix.fabric.planes: must be a list of at least one value"),
        ("{seed: [1, 2, 1]}", "s.yaml:9:23: matrix.seed.2: duplicate value 1; to run a cell again use --repeat"),
        ("{name: [a, b]}", "s.yaml:9:10: matrix.name: name cannot vary: every cell has the scenario's name"),
        ("{paper.figure: [a, b]}", "matrix.paper.figure: paper.figure cannot vary"),
        ("{fabric..planes: [1]}", "s.yaml:9:10: matrix.fabric..planes: 'fabric..planes' is not a dotted key"),
        ("{fabric: [{}], fabric.planes: [2]}", "fabric.planes is a part of fabric; both cannot vary"),
        (
            "{fabric.plains: [2, 3]}",
            "s.yaml:9:26: fabric.plains: unknown key 'plains'; did you mean 'planes'? (in [pla",
        ),
        ("{fabric.planes: [2, 20]}", "s.yaml:9:29: fabric.planes: 20 is outside 1..16"),
        ("{fabric.planes: [2, 1]}", "s.yaml:7:29: faults.0.link-down: there is no link"),
        ("{faults.4.at: [1s]}", "s.yaml:9:24: faults.4.at: the list has no item 4"),
    ],
)
def test_a_mistake_stands_where_it_was_written(tmp_path: Path, matrix: str, says: str) -> None:
    assert any(says in line for line in mistakes(written(tmp_path, matrix)))


def test_a_mistake_names_the_cells_that_have_it(tmp_path: Path) -> None:
    path = written(tmp_path, "{fabric.planes: [2, 1], seed: [1, 2, -3]}")
    found = mistakes(path)
    assert len(found) == 2
    assert found[0].endswith("did you mean 'p0-t0-0:p0-t1-1'? (in [planes=1])")
    assert found[1].endswith("seed: must be at least 0, such as 7; got -3 (in [seed=-3])")
    everywhere = mistakes(path, "fabric.planes=1", "seed=1,2")
    assert [line.count("(in ") for line in everywhere] == [0], "a mistake of all cells is one of the scenario"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("fabric.planes", "--matrix fabric.planes: must be KEY=V1,V2,... with a dotted key"),
        ("fabric.planes=", "must be KEY=V1,V2,..."),
        ("=2", "'' is not a dotted key"),
        ("fabric.planes=2,2", "--matrix fabric.planes=2,2: duplicate value 2"),
        ("fabric.planes=[2", "--matrix fabric.planes=[2: not valid YAML"),
        ("matrix=1,2", "--matrix matrix=1,2: matrix cannot vary"),
        ("fabric=1", "fabric.planes is a part of fabric"),
        ("fabric.planes=2,40", "--matrix fabric.planes=40: 40 is outside 1..16"),
        ("faults.0.at=1x", "--matrix faults.0.at=1x: '1x' has an unknown unit"),
    ],
)
def test_a_mistake_of_the_option_shows_the_option(file: Path, option: str, says: str) -> None:
    assert any(says in line for line in mistakes(file, option))


def test_a_key_is_set_or_varied(file: Path) -> None:
    (said,) = mistakes(file, overrides=("fabric.planes=8",))
    assert said.startswith("--set fabric.planes=8: the matrix varies this key; leave one out, or write --matrix")
    with pytest.raises(ScenarioError, match="--seed 3: the matrix varies this key"):
        load_cells(file, seed=3, sweep=Sweep(("seed=1,2",)))


@pytest.mark.parametrize(
    ("matrix", "option"),
    [
        ("{workload.0.train: [{steps: 3, compute: 1s, allreduce: 1MiB}]}", "workload.0.train.steps=5"),
        ("{fabric: [{planes: 2}, {planes: 4}]}", "fabric.rtt=10ms"),
    ],
)
def test_a_part_of_what_varies_cannot_be_set(tmp_path: Path, matrix: str, option: str) -> None:
    """Every cell would replace it."""
    (said,) = mistakes(written(tmp_path, matrix), overrides=(option,))
    axis = matrix.partition(":")[0].removeprefix("{")
    assert said == f"--set {option}: the matrix varies {axis}, which this key is a part of; leave one out"


def test_a_part_of_what_is_set_can_vary(file: Path) -> None:
    changes = ("fabric={planes: 2, t0_groups: 2, t1: 3, hosts_per_t0: 1}",)
    fabrics = [cell.scenario.fabric for cell in load_cells(file, changes)]
    assert [(fabric.planes, fabric.t1) for fabric in fabrics] == [(2, 3), (2, 3), (4, 3), (4, 3)]


def test_no_two_cells_have_one_name(tmp_path: Path) -> None:
    long = [f"{{steps: 3, compute: 50ms, allreduce: {size}, hosts: all}}" for size in ("1MiB", "2MiB", "2MiX")]
    path = written(tmp_path, f"{{workload.0.train: [{long[0]}, {long[1]}], fabric.rtt: [20ms]}}")
    assert names(path) == [f"[train={one}, rtt=20ms]" for one in long[:2]], "cut they would be the same"
    assert names(path, f"workload.0.train={long[0]}", "fabric.rtt=10ms,20ms") == [
        f"[train={long[0][:37]}..., rtt={rtt}]" for rtt in ("10ms", "20ms")
    ]
    (mistake,) = mistakes(path, f"workload.0.train={long[0]},{long[2]}")
    assert mistake.endswith(f"(in [train={long[2]}, rtt=20ms])")


def test_too_many_runs_must_be_meant(file: Path, call: Call) -> None:
    with pytest.raises(UsageError, match=r"4 cells, 26 times each, are 104 runs; for more than 100 use --many"):
        load_cases([file], times=Repetitions(26))
    assert len(load_cases([file], times=Repetitions(26, many=True))) == 104
    wide = f"seed={','.join(map(str, range(26)))}"
    with pytest.raises(UsageError, match="has 104 cells; for more than 100 use --many"):
        load_cases([file], sweep=Sweep((wide,)))
    assert call("validate", str(file), "--matrix", wide).status == 0
    with pytest.raises(UsageError, match="has 1004 cells; the limit is 1000"):
        load_cells(file, sweep=Sweep((f"seed={','.join(map(str, range(251)))}",)))


def test_repetitions_of_a_cell_are_spread_and_every_other_round_runs_backwards(file: Path) -> None:
    def order(times: Repetitions, *matrix: str) -> list[tuple[int, int, int]]:
        cases = load_cases([file], sweep=Sweep(("fabric.rtt=20ms", *matrix)), times=times)
        return [(case.number, case.scenario.seed, case.scenario.fabric.planes) for case in cases]

    assert order(Repetitions(3)) == [(1, 5, 2), (1, 5, 4), (2, 5, 4), (2, 5, 2), (3, 5, 2), (3, 5, 4)]
    assert order(Repetitions(), "seed=1,2,3") == [(1, 1, 2), (1, 1, 4), (1, 2, 4), (1, 2, 2), (1, 3, 2), (1, 3, 4)]
    assert order(Repetitions(2, vary_seed=True)) == [(1, 5, 2), (1, 5, 4), (2, 6, 4), (2, 6, 2)]
    with pytest.raises(UsageError, match="its matrix varies the seed itself"):
        order(Repetitions(2, vary_seed=True), "seed=1,2")


def test_cells_are_named_in_the_table_and_in_the_reports(
    file: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_scenario(scenario: Any, _out: Path, _quiet: bool, console: Any) -> Any:
        return outcome(name=scenario.name, folder=str(tmp_path / "none"))

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    report = tmp_path / "r.json"
    ended = call("run", str(file), "--matrix", "fabric.rtt=20ms", "--repeat", "2", "--json", str(report))
    assert "small [planes=4, rtt=20ms] #2" in " ".join(ended.out.split())
    assert "\N{BOX DRAWINGS LIGHT HORIZONTAL} small [planes=2, rtt=20ms] #1 " in ended.out, "above the run"
    assert json.loads(report.read_text())["runs"][0]["cell"] == {"fabric.planes": 2, "fabric.rtt": "20ms"}


def test_validate_checks_every_cell(file: Path, call: Call) -> None:
    assert "s.yaml: ok: small, 4 cells, takes about " in call("validate", str(file)).out
    ended = call("validate", str(file), "--matrix", "fabric.planes=1")
    assert (ended.status, "there is no link" in ended.err) == (2, True)


def test_editors_know_the_key() -> None:
    key = scenario_json_schema()["properties"]["matrix"]
    assert (key["type"], key["additionalProperties"]["type"]) == ("object", "array")


WORDS = st.sampled_from(["a", "b", "0", "7", "loss"])


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4).map(".".join), min_size=1, max_size=6, unique=True))
def test_short_names_tell_keys_apart(keys: list[str]) -> None:
    shorts = short_names(keys)
    assert len(set(shorts.values())) == len(keys)
    assert all(f".{key}".endswith(f".{short}") for key, short in shorts.items())


def test_a_name_is_as_short_as_it_can_be() -> None:
    assert short_names(["fabric.planes", "faults.0.loss", "faults.1.loss", "expect.0", "seed"]) == {
        "fabric.planes": "planes",
        "faults.0.loss": "faults.0.loss",
        "faults.1.loss": "faults.1.loss",
        "expect.0": "expect.0",
        "seed": "seed",
    }
