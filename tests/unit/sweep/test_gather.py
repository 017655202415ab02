"""What a sweep came to, read from cell.json alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mrc_testbed.testbed.compare.comparison import compare
from mrc_testbed.testbed.compare.runs import SIDE, ComparedRun, load_run
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.sweep import tables
from mrc_testbed.testbed.sweep.evidence import unpack
from mrc_testbed.testbed.sweep.folder import SweepFolder
from mrc_testbed.testbed.sweep.gather import compared_runs, gather
from mrc_testbed.testbed.version import install_extra
from tests.unit.calls import Call
from tests.unit.sweep.swept import FAIL, MACHINE, PASS, RECORDED_SCENARIO, SPOILT, keep, planned, real_document

AXIS = ("endpoint.ev_active=2,4",)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    return real_document(tmp_path_factory.mktemp("real"))


def filled(place: Path, real: tuple[dict[str, Any], bytes], repeat: int = 2) -> SweepFolder:
    """Cells of two settings on two machines, b twice as slow; with ev_active 4 all takes half as long again."""
    folder = planned(place, repeat, text=RECORDED_SCENARIO, matrix=AXIS)
    for number, cell in enumerate(folder.cells):
        machine = "ab"[number // 2 % 2]
        active = cell.settings["endpoint.ev_active"]
        factor = (2 if machine == "b" else 1) * (1.5 if active == 4 else 1) * (1 + number / 1000)
        run = dict(real[0]["run"], seed=cell.seed, world="kernel", scenario_sha256=cell.sha256)
        run["settings"] = dict(run["settings"], **{"endpoint.ev_active": str(active)})
        run["figures"] = {key: value * factor for key, value in run["figures"].items()}
        folder.keep(cell, dict(real[0], machine=dict(MACHINE, host=machine), run=run), real[1])
    return folder


def test_a_cell_says_of_a_run_what_its_folder_does(tmp_path: Path, real: tuple[dict[str, Any], bytes]) -> None:
    unpack(real[1], tmp_path)
    told, read = ComparedRun.from_cell(real[0]["run"], tmp_path), load_run(tmp_path)
    assert json.dumps(told.as_dict()) == json.dumps(read.as_dict())
    assert told.record.history == read.record.history


def test_machines_are_blocks(tmp_path: Path, real: tuple[dict[str, Any], bytes]) -> None:
    """The machines differ by a factor of two, and the ratio of the settings is seen all the same."""
    found = gather(filled(tmp_path, real, 4).path, ())
    runs = [
        ComparedRun.from_cell(one.document["run"], one.folder, one.document["machine"]["host"])
        for one in (found.believed())
    ]
    row = next(row for row in compare(runs).rows if row.figure.key == "step_time.median")
    estimate = row.cells[1].estimate
    assert estimate
    assert estimate.value == pytest.approx(1.5, rel=0.01)
    assert estimate.low is not None
    assert estimate.low > 1.4


def test_gather_compares_and_writes_tables(tmp_path: Path, call: Call, real: tuple[dict[str, Any], bytes]) -> None:
    folder = filled(tmp_path, real)
    junit, all_json = tmp_path / "junit.xml", tmp_path / "all.json"
    ended = call(
        *("sweep", "gather", str(folder.path), "--tables", "steps"), "--junit", str(junit), "--json", str(all_json)
    )
    assert ended.status == folder.exit_code(folder.cells)
    assert "4 cells: 4 " in ended.out
    (page,) = folder.path.glob("*-compare/compare.html")
    assert "ev_active" in page.read_text()
    frame = pd.read_parquet(folder.path / "sweep.parquet")
    assert list(frame["host"]) == ["a", "a", "b", "b"]
    assert set(frame["endpoint.ev_active"]) == {2, 4}
    assert set(pd.read_parquet(folder.path / "steps.parquet")["cell"]) == set(folder.by_id)
    assert len(json.loads(all_json.read_text())["runs"]) == 4
    names = re.findall(r'<testsuite [^>]*name="([^"]*)"', junit.read_text())
    assert len({*names}) == 4, names


def test_cells_without_evidence_are_compared_by_their_figures(
    tmp_path: Path, call: Call, real: tuple[dict[str, Any], bytes]
) -> None:
    folder = filled(tmp_path, (real[0], b""))
    ended = call("sweep", "gather", str(folder.path))
    assert not ended.err
    (page,) = folder.path.glob("*-compare/compare.html")
    assert "within each of 2 machines" in page.read_text()


def test_tables_of_runs_without_evidence_are_told(
    tmp_path: Path, call: Call, real: tuple[dict[str, Any], bytes]
) -> None:
    folder = filled(tmp_path, (real[0], b""))
    words = ("sweep", "gather", str(folder.path), "--tables", "steps", "--quiet")
    refused = call(*words)
    assert refused.status == 2
    assert "no run came with its evidence" in refused.err
    assert not list(folder.path.glob("steps.*"))
    cell = next(iter(folder.by_id))
    unpack(real[1], folder.path / "cells" / cell / "1")
    told = call(*words)
    assert "3 runs came without their evidence" in told.err
    assert set(pd.read_parquet(folder.path / "steps.parquet")["cell"]) == {cell}


def test_without_pyarrow_tables_are_csv(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "has_parquet", lambda: False)
    folder = planned(tmp_path, 1)
    keep(folder, folder.cells[0], PASS)
    ended = call("sweep", "gather", str(folder.path))
    assert ended.status == 0
    assert install_extra("sweep") in ended.err
    assert "pass" in (folder.path / "sweep.csv").read_text()


def test_parts_are_brought_together_however_often(tmp_path: Path) -> None:
    folder, part = planned(tmp_path, 2, "whole"), planned(tmp_path, 2, "part")
    first, second = folder.cells
    keep(folder, first, PASS)
    keep(part, second, SPOILT)
    keep(part, second, FAIL)
    for _ in range(2):
        found = gather(folder.path, [part.path])
    assert [len(cell.tries) for cell in found.cells] == [1, 2]
    assert found.exit_code is ExitCode.FAIL
    assert found.totals == "2 cells: 1 pass, 1 fail"


def test_cells_of_several_versions_are_not_mixed_unasked(tmp_path: Path, call: Call) -> None:
    folder = planned(tmp_path, 2)
    for cell, version in zip(folder.cells, ("0.1.0", "0.2.0"), strict=True):
        keep(folder, cell, PASS, version=version, commit=None)
    with pytest.raises(UsageError, match=r"0\.1\.0 .*; 0\.2\.0 .*--mixed"):
        gather(folder.path, ())
    assert gather(folder.path, (), mixed=True).exit_code is ExitCode.PASS


def planned_by(place: Path, name: str, version: str, *documents: dict[str, Any]) -> SweepFolder:
    """A sweep of two cells by another version, with a try for each document."""
    folder = planned(place, 2, name)
    about = json.loads((folder.path / "sweep.json").read_text())
    (folder.path / "sweep.json").write_text(json.dumps(about | {"version": version, "commit": None}))
    for cell, document in zip(folder.cells, documents, strict=False):
        keep(folder, cell, document, version=version, commit=None)
    return SweepFolder(folder.path)


def written(folder: SweepFolder) -> list[Path]:
    return sorted((folder.path / "cells").rglob("*"))


def test_tries_of_another_version_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The ids of cells say nothing of the version."""
    mine = planned_by(tmp_path, "a", "0.1.0", PASS)
    for theirs in (planned_by(tmp_path, "b", "0.2.0", PASS, FAIL), planned_by(tmp_path, "empty", "0.2.0")):
        before = written(mine)
        with pytest.raises(UsageError, match=r"0\.2\.0 .*0\.1\.0 .*--mixed"):
            gather(mine.path, [theirs.path])
        assert written(mine) == before
    assert gather(mine.path, ()).totals == "2 cells: 1 pass, 1 not run"


def test_the_fails_of_another_version_do_not_hide_behind_passes(tmp_path: Path) -> None:
    mine = planned_by(tmp_path, "c", "0.1.0", PASS, PASS)
    theirs = planned_by(tmp_path, "d", "0.2.0", FAIL, FAIL)
    with pytest.raises(UsageError, match="--mixed"):
        gather(mine.path, [theirs.path])
    found = gather(mine.path, [theirs.path], mixed=True)
    assert found.totals == "4 cells: 2 pass, 2 fail"
    assert found.exit_code is ExitCode.FAIL
    assert [cell.home.path for cell in found.cells] == [mine.path] * 2 + [theirs.path] * 2
    assert gather(mine.path, ()).totals == "2 cells: 2 pass"


def test_runs_of_several_versions_are_no_repeats(
    tmp_path: Path, real: tuple[dict[str, Any], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []
    for version in ("0.1.0", "0.2.0"):
        (tmp_path / version).mkdir()
        monkeypatch.chdir(tmp_path / version)
        planned_by(Path(), "sweep", version)
        folder = SweepFolder(tmp_path / version / "sweep")
        folders.append(folder)
        run = dict(real[0]["run"], scenario_sha256=folder.cells[0].sha256)
        folder.keep(folder.cells[0], dict(real[0], version=version, commit=None, run=run), real[1])
    mine, theirs = folders
    found = gather(mine.path, [theirs.path], mixed=True)
    runs = compared_runs(found, mine.cells[0].file)
    assert [run.settings[SIDE] for run in runs] == ["0.1.0 (unknown)", "0.2.0 (unknown)"]
    assert len(compare(runs, with_inconclusive=True).columns) == 2
    tables.write_tables(found, ["steps"])
    (path,) = mine.path.glob("steps.*")
    steps = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    assert set(steps["version"]) == {"0.1.0 (unknown)", "0.2.0 (unknown)"}


def test_tries_of_another_scenario_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder, part = planned(tmp_path, 1, "whole"), planned(tmp_path, 1, "part")
    keep(part, part.cells[0], PASS, run={"scenario_sha256": "other"})
    with pytest.raises(UsageError, match="ran another scenario than was planned"):
        gather(folder.path, [part.path])
    assert not written(folder)


def test_cells_of_another_sweep_are_not_mixed_unasked(tmp_path: Path) -> None:
    folder = planned(tmp_path, 1)
    other = planned(tmp_path, 1, "other", RECORDED_SCENARIO)
    keep(other, other.cells[0], PASS)
    with pytest.raises(UsageError, match="is none of"):
        gather(folder.path, [other.path])
    assert len(gather(folder.path, [other.path], mixed=True).cells) == 2


def test_a_cell_that_ran_another_scenario_is_refused(tmp_path: Path) -> None:
    folder = planned(tmp_path, 1)
    keep(folder, folder.cells[0], PASS, run={"scenario_sha256": "other"})
    with pytest.raises(UsageError, match="ran another scenario than was planned"):
        gather(folder.path, ())


def test_cells_that_were_not_run_are_inconclusive(tmp_path: Path, call: Call) -> None:
    folder = planned(tmp_path, 2)
    keep(folder, folder.cells[0], PASS)
    ended = call("sweep", "gather", str(folder.path), "--quiet")
    assert ended.status == 3
    assert "2 cells: 1 pass, 1 not run" in ended.out
