"""The shipped sets beside files of other kinds: a row is what it says, and `--cases mine` keeps the file's faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import Cell, load_cells, load_scenario
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.scenario.model.variants import shipped_sets

FAMILIES = {
    "clos2": "{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4}",
    "clos3": "{planes: 2, family: {clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}}",
}
PRESETS = {
    "none": "",
    "short": "endpoint: production",
    "long": "endpoint: {preset: production}",
    "own": "endpoint: {preset: production, ev_active: 16}",
    "roce": "transport: roce\nrouting: ecmp-static\nroce: {recovery: selective, timeout: 17}",
    "qps": "transport: roce\nrouting: ecmp-static\nqps: 5\nendpoint: {payload: 2048B}\necmp: {choose: adaptive}",
    "bgp": "routing: bgp\nbgp: {routes: racks}\ntcp: {connections: 3, congestion_control: reno}",
}


def written(folder: Path, fabric: str, more: str, cases: str = "") -> Path:
    path = folder / "site.yaml"
    path.write_text(f"""\
name: site
world: kernel
fabric: {fabric}
{more}
workload:
  - train: {{hosts: all, steps: 12, compute: 100ms, allreduce: 2MiB}}
faults:
  - {{at: 500ms, link-down: "p0-t0-0:p0-t1-0", for: 500ms, name: own}}
{cases}
""")
    return path


def cells(path: Path, against: str, cases: str = "mine", variants: str = "") -> dict[str, Cell]:
    found = load_cells(path, sweep=Sweep(against=against, cases=cases, variants=variants))
    return {" ".join(map(str, cell.settings)): cell for cell in found}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("against", shipped_sets())
def test_every_set_runs_the_faults_of_any_file(tmp_path: Path, against: str, preset: str, family: str) -> None:
    found = cells(written(tmp_path, FAMILIES[family], PRESETS[preset]), against)
    assert next(iter(found)) == "mrc mine"
    assert {cell.scenario.case for cell in found.values()} == {"mine"}
    assert {fault.name for cell in found.values() for fault in cell.scenario.faults} == {"own"}


STATED = {"today": ("transport", "routing", "layout", "endpoint", "own", "ecmp", "workload"),
          "baselines": ("transport", "routing", "endpoint", "workload")}  # fmt: skip
"""What no row takes from the file. In the workload these are the QPs of each flow."""


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("against", STATED)
def test_a_row_is_the_same_whatever_the_file_speaks_and_presets(tmp_path: Path, against: str, preset: str) -> None:
    def rows(more: str) -> dict[str, object]:
        found = cells(written(tmp_path, FAMILIES["clos2"], more), against)
        return {name: [getattr(one.scenario, key) for key in STATED[against]] for name, one in found.items()}

    usual = rows("")
    assert rows(PRESETS[preset]) == usual
    assert len({str(row) for row in usual.values()}) == len(usual)


@pytest.mark.parametrize(
    ("preset", "lost"),
    [
        ("bgp", "routing: bgp"),
        ("qps", "qps: 5"),
        ("own", "endpoint: {preset: production, ev_active: 16}"),
        ("short", ""),
        ("long", ""),
    ],
)
def test_what_no_row_has_of_the_file_is_told_and_the_row_mine_has_it(tmp_path: Path, preset: str, lost: str) -> None:
    path = written(tmp_path, FAMILIES["clos2"], PRESETS[preset])
    told = next(iter(cells(path, "today").values())).scenario.left_out
    assert any(lost in line and "--variants mine" in line for line in told) == bool(lost)
    mine = cells(path, "today", variants="mine,roce")["mine mine"].scenario
    alone = load_scenario(path)
    assert (mine.routing, mine.endpoint, mine.workload) == (alone.routing, alone.endpoint, alone.workload)
    assert not mine.left_out


@pytest.mark.parametrize("against", STATED)
def test_a_fault_that_corrupts_keeps_the_icrc_of_its_file(tmp_path: Path, against: str) -> None:
    path = written(tmp_path, FAMILIES["clos2"], "endpoint: {icrc: true}")
    path.write_text(
        path.read_text().replace(
            "  - {at: 500ms,", "  - {at: 300ms, corrupt: p0-t0-0:p0-t1-1, share: 1%, for: 1s}\n  - {at: 500ms,"
        )
    )
    found = cells(path, against)
    assert {cell.scenario.endpoint.icrc for cell in found.values()} == {True}
    assert not any(cell.scenario.left_out for cell in found.values())


def test_mine_are_the_cases_of_the_file_where_it_has_some(tmp_path: Path) -> None:
    path = written(tmp_path, FAMILIES["clos2"], "", "cases: {calm: {faults: []}, cut: {}}")
    assert list(cells(path, "baselines"))[:2] == ["mrc calm", "mrc cut"]
    assert list(cells(path, "today"))[:2] == ["mrc calm", "mrc cut"]
    assert list(cells(path, "today", "near-cut,mine"))[:2] == ["mrc near-cut", "mrc mine"]


def test_cases_of_a_set_that_do_not_fit_say_how_to_run_the_own_faults(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        cells(written(tmp_path, FAMILIES["clos3"], ""), "today", "")
    assert all(
        "for the faults and the workload of your own file add --cases mine" in str(one) for one in caught.value.problems
    )


def test_a_key_below_a_preset_in_short_is_set_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path, FAMILIES["clos2"], "endpoint: production # of the site")
    endpoint = load_scenario(path, ["endpoint.ev_active=16"]).endpoint
    assert (endpoint.preset, endpoint.ev_active, endpoint.mpr) == ("production", 16, 4)
    again = load_scenario(path, ["endpoint.ev_active=16"]).dump_yaml()
    (tmp_path / "again.yaml").write_text(again)
    assert load_scenario(tmp_path / "again.yaml").endpoint == endpoint
