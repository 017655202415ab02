"""Groups are named by what was varied; keys that nobody reads, or that come with what was chosen, are no difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.result import Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.figures import RunFigures
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.settings import settings_of
from mrc_testbed.testbed.scenario import Scenario, Setting, load_cells, load_scenario
from mrc_testbed.testbed.scenario.cells.axes import Sweep

TEXT = """\
name: idea
fabric: {planes: 2, t0_groups: 1, t1: 0, hosts_per_t0: 2}
workload:
  - write: {from: h0, to: h1, bytes: 1MiB}
expect: [qp_errors == 0]
"""


def run_of(scenario: Scenario, number: int, settings: dict[str, str] | None = None) -> ComparedRun:
    verdict = Verdict(Status.PASS, "idea", (), Fidelity(()))
    figures = RunFigures({"flow_goodput.min": 1.0 + number}, {})
    found = settings_of(scenario) | (settings or {})
    return ComparedRun(Path(str(number)), "idea", scenario.seed, scenario.world, "MRC", verdict, found, figures)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(TEXT)
    return path


def cells_of(file: Path, *matrix: str) -> Comparison:
    cells = load_cells(file, sweep=Sweep(matrix))
    return compare([run_of(cell.scenario, number).in_cell(cell.settings) for number, cell in enumerate(cells)])


def labels(found: Comparison) -> list[str]:
    return [column.label for column in found.columns]


def test_a_matrix_names_the_groups_however_many_keys_it_changes(file: Path) -> None:
    found = cells_of(file, "endpoint=testbed,production")
    assert labels(found) == ["endpoint=testbed", "endpoint=production"]
    assert not found.notes


def test_a_matrix_of_four_axes_names_the_groups_by_all_of_them(file: Path) -> None:
    matrix = ("fabric.planes=1,2", "fabric.rtt=10ms,20ms", "endpoint.ev_active=2,4", "endpoint.mpr=4,8")
    found = cells_of(file, *matrix)
    assert len(found.columns) == 16
    assert labels(found)[0] == "planes=1, rtt=10ms, ev_active=2, mpr=4"


def test_seeds_of_a_matrix_are_repeats(file: Path) -> None:
    found = cells_of(file, "seed=1,2", "endpoint.mpr=4,8")
    assert labels(found) == ["mpr=4", "mpr=8"]
    assert [len(column.runs) for column in found.columns] == [2, 2]


def both(scenario: Scenario, own: Sequence[dict[str, str]]) -> Comparison:
    return compare([run_of(scenario, number, settings) for number, settings in enumerate(own)])


def test_keys_of_a_chosen_plugin_come_with_it(file: Path) -> None:
    kind = "endpoint.congestion_control"
    keys = {f"endpoint.mine.{name}": "1" for name in ("gain", "target", "floor", "roof")}
    nscc, mine = {kind: "nscc"}, {kind: "mine", **keys}
    assert labels(both(load_scenario(file), [nscc, mine])) == ["congestion_control=nscc", "congestion_control=mine"]
    other = {**mine, "endpoint.mine.gain": "2"}
    assert labels(both(load_scenario(file), [mine, other])) == ["gain=1", "gain=2"]


def test_keys_of_a_transport_that_is_not_spoken_are_no_difference(file: Path) -> None:
    written = load_scenario(file, ["roce.timeout=16"])
    assert settings_of(written) == settings_of(load_scenario(file))
    assert settings_of(load_scenario(file, ["transport=roce", "roce.timeout=16"]))["roce.timeout"] == "16"


def test_a_setting_says_what_was_varied(file: Path) -> None:
    run = run_of(load_scenario(file), 0).in_cell(
        [Setting("seed", "seed", 2, "2"), Setting("endpoint.mpr", "mpr", 4, "4")]
    )
    assert (run.axes, run.settings["endpoint.mpr"]) == (("endpoint.mpr",), "4")
