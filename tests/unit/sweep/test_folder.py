"""The folder of a sweep: planned once, tried often, believed once."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app.batch import Repetitions, load_cases
from mrc_testbed.testbed.errors import ExitCode, RunError, UsageError
from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.sweep.evidence import SUMMARY, pack, unpack
from mrc_testbed.testbed.sweep.folder import SweepCell, SweepFolder
from mrc_testbed.testbed.sweep.plan import plan_sweep
from mrc_testbed.testbed.sweep.share import MOST_JOBS, job_matrix, share_of
from tests.unit.calls import Call
from tests.unit.sweep.swept import FAIL, PASS, SMALL, SPOILT, keep, planned

ROOT = Path(__file__).parents[3]


def test_a_plan_has_each_cell_with_the_scenario_as_it_is_run(tmp_path: Path) -> None:
    folder = planned(tmp_path, matrix=("endpoint.ev_active=2,4",))
    assert [(cell.seed, cell.settings["endpoint.ev_active"]) for cell in folder.cells[:3]] == [(7, 2), (7, 4), (8, 4)]
    assert len(folder.by_id) == 6
    text = folder.scenario(folder.cells[1])["scenario.yaml"].decode()
    assert "ev_active: 4" in text


def test_the_same_scenario_again_is_another_cell_and_the_same_plan_the_same_cells(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    cases = load_cases([file], (), None, Repetitions(2))
    one, other = (plan_sweep(cases, tmp_path / name, {}) for name in ("one", "other"))
    assert len(one.by_id) == 2
    assert one.cells == other.cells


PLUGIN = ROOT / "docs" / "examples" / "step_spread.py"


def with_plugin(place: Path) -> SweepFolder:
    (place / PLUGIN.name).write_text(PLUGIN.read_text())
    return planned(place, 1, text=f"{SMALL}plugins: [../{place.name}/{PLUGIN.name}]\n")


def test_plugins_go_with_their_cells(tmp_path: Path) -> None:
    folder = with_plugin(tmp_path)
    assert folder.scenario(folder.cells[0])["plugins/step_spread.py"].decode() == PLUGIN.read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda plugins: (plugins / PLUGIN.name).write_text("# mine\n"),
        lambda plugins: (plugins / PLUGIN.name).unlink(),
        lambda plugins: (plugins / "another.py").write_text(""),
    ],
)
def test_plugins_that_were_changed_since_are_refused(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder = with_plugin(tmp_path)
    change(folder.path / "scenarios" / folder.cells[0].id / "plugins")
    with pytest.raises(UsageError, match=r"plugins/\w+\.py: was changed since it was planned"):
        SweepFolder(folder.path).scenario(folder.cells[0])


def test_a_scenario_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    folder = planned(tmp_path, 1)
    with (folder.path / "scenarios" / folder.cells[0].id / "scenario.yaml").open("a") as file:
        file.write("# mine\n")
    with pytest.raises(UsageError, match="was changed since it was planned"):
        folder.scenario(folder.cells[0])


def test_the_first_conclusive_try_is_believed(tmp_path: Path) -> None:
    folder = planned(tmp_path, 1)
    (cell,) = folder.cells
    tries = [keep(folder, cell, document) for document in (SPOILT, FAIL, PASS)]
    assert [one.number for one in tries] == [1, 2, 3]
    believed = folder.believed(cell)
    assert believed
    assert believed.number == 2
    assert folder.exit_code(folder.cells) is ExitCode.FAIL


def test_what_was_not_run_is_inconclusive(tmp_path: Path) -> None:
    folder = planned(tmp_path, 2)
    keep(folder, folder.cells[0], PASS)
    assert folder.open_cells() == [folder.cells[1]]
    assert folder.exit_code(folder.cells) is ExitCode.INCONCLUSIVE


def test_a_try_that_was_cut_off_is_none_and_goes(tmp_path: Path) -> None:
    folder = planned(tmp_path, 1)
    left = folder.path / "cells" / folder.cells[0].id / ".new-x"
    left.mkdir(parents=True)
    (left / "cell.json").write_text(json.dumps(PASS))
    assert folder.tries(folder.cells[0]) == []
    with folder.owned():
        assert left.exists(), "a `sweep cell` beside this one may be writing it"
    os.utime(left, (0, 0))
    with folder.owned():
        assert not left.exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"exit_code": 77}, "exit_code: 77 is none"),
        ({"exit_code": [1]}, "exit_code: "),
        ({"seconds": "long"}, "seconds: must be a number"),
        ({"verdict": 3}, "verdict: is damaged"),
        ({"run": [1]}, "run: is damaged"),
        ({"machine": "here"}, "machine: is damaged"),
        ({"warnings": 3}, "warnings: is damaged"),
    ],
)
def test_a_damaged_cell_is_told_with_its_place(tmp_path: Path, changes: dict[str, object], told: str) -> None:
    folder = planned(tmp_path, 1)
    keep(folder, folder.cells[0], PASS, **changes)
    with pytest.raises(RecordError, match=told) as refused:
        folder.open_cells()
    assert "cell.json" in str(refused.value)
    assert str(folder.path / "cells" / folder.cells[0].id / "1") in str(refused.value)


def test_two_sweep_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = planned(tmp_path, 1)
    with folder.owned(), pytest.raises(UsageError, match="another process is running this sweep"), folder.owned():
        pass
    with folder.owned():
        pass


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("sweep.json", '{"format": 99, "cells": 1}', "is of format 99"),
        ("sweep.json", "{", "is no sweep"),
        ("cells.jsonl", "", "has 0 cells"),
        ("cells.jsonl", '{"id": "x"}\n', "line 1 is no cell"),
    ],
)
def test_a_damaged_folder_is_told(tmp_path: Path, file: str, text: str, told: str) -> None:
    path = planned(tmp_path, 1).path
    (path / file).write_text(text)
    with pytest.raises(UsageError, match=told):
        SweepFolder(path)


def cells_of(number: int) -> list[SweepCell]:
    return [SweepCell(str(n), "", "", "", 1, n, {}, "kernel", "mrc", 1.0, 1.0, {}) for n in range(number)]


@given(st.integers(0, 60), st.integers(1, 20))
def test_shares_hold_each_cell_once_and_are_alike(cells: int, of: int) -> None:
    whole = cells_of(cells)
    shares = [share_of(whole, index, of) for index in range(of)]
    assert sorted(cell.seed for share in shares for cell in share) == list(range(cells))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_no_share_has_one_setting_alone() -> None:
    """Four settings in turn on four shares: dealt out in order, each share would get one of them."""
    share = share_of(cells_of(80), 0, 4)
    assert len({cell.seed % 4 for cell in share}) == 4


@pytest.mark.parametrize("index", [7, 5, -1])
def test_a_share_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(UsageError, match="shares are counted from 0 to 4"):
        share_of(cells_of(3), index, 5)


def test_a_matrix_of_jobs_has_no_empty_ones_and_no_more_than_a_workflow_may() -> None:
    assert job_matrix(2, 20) == {"include": [{"index": 0, "of": 2}, {"index": 1, "of": 2}]}
    assert len(job_matrix(1000, 1000)["include"]) == MOST_JOBS


def packed(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member, io.BytesIO(b""))
    return out.getvalue()


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b/c", "a/../../x"])
def test_evidence_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="no file of a run folder"):
        unpack(packed(name), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_evidence_has_plain_files_alone(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(RunError, match="no file of a run folder"):
        unpack(packed("x", kind), tmp_path)


def test_what_is_no_evidence_is_told(tmp_path: Path) -> None:
    whole = packed("x")
    damaged = whole[:20] + bytes(each ^ 0xFF for each in whole[20:])
    for sent in (b"not packed", whole[:-20], damaged, gzip.compress(b"x" * 999)):
        with pytest.raises(RunError, match="cannot be unpacked"):
            unpack(sent, tmp_path)


def test_evidence_comes_without_captures_and_a_summary_with_little(tmp_path: Path) -> None:
    run, all_of_it, little = (tmp_path / name for name in ("run", "evidence", "summary"))
    for name in ("verdict.json", "samples.csv", "pcap/x.pcapng", "logs/h0.log"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("x")
    for folder, fetch in ((all_of_it, "evidence"), (little, SUMMARY)):
        folder.mkdir()
        unpack(pack(run, fetch), folder)
    assert sorted(path.name for path in all_of_it.rglob("*.*")) == ["h0.log", "samples.csv", "verdict.json"]
    assert [path.name for path in little.iterdir()] == ["verdict.json"]


def test_a_folder_that_is_there_is_not_planned_over(tmp_path: Path, call: Call) -> None:
    folder = planned(tmp_path, 1)
    ended = call("sweep", "plan", str(tmp_path / "sweep.yaml"), "--out", str(folder.path))
    assert ended.status == 2
    assert "has a sweep already: `sweep run` goes on with it" in ended.err


def test_more_than_a_hundred_runs_of_a_matrix_are_meant(tmp_path: Path, call: Call) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    words = ("sweep", "plan", str(tmp_path / "small.yaml"), "--matrix", "endpoint.ev_active=2,4", "--repeat", "51")
    ended = call(*words, "--out", str(tmp_path / "big"))
    assert ended.status == 2
    assert "--many" in ended.err
    assert not (tmp_path / "big").exists()


def test_a_folder_of_another_version_is_refused(tmp_path: Path, call: Call) -> None:
    path = planned(tmp_path, 1).path
    about = json.loads((path / "sweep.json").read_text())
    (path / "sweep.json").write_text(json.dumps(about | {"version": "0.0.9"}))
    ended = call("sweep", "run", str(path))
    assert ended.status == 2
    assert "was planned by mrc-testbed 0.0.9" in ended.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cell", "{sweep}", "--index", "7", "--of", "5"), "--index 7 --of 5: shares are counted from 0 to 4"),
        (("run", "{sweep}", "--on", "tcp://10.0.0.1:8786"), "is root on every worker"),
        (("run", "{sweep}", "--on", "tcp://vm0:8786"), "is root on every worker"),
        (("run", "{sweep}", "--on", "tls://vm0:8786"), "make keys by `mrc-testbed sweep keys certs`"),
        (("run", "{sweep}", "--on", "vm0"), "is no address of a scheduler"),
        (("run", "{sweep}", "--on", "tcp://127.0.0.1:9", "--jobs", "2"), "--jobs: is for --on local"),
        (("run", "{sweep}", "--fetch", "some"), "must be one of summary, evidence, all"),
        (("run", "{sweep}/cells"), "is no sweep"),
        (("gather", "{sweep}", "--tables", "stepz"), "there is no table 'stepz'"),
    ],
)
def test_bad_input_is_one_line_with_the_fix(tmp_path: Path, call: Call, words: tuple[str, ...], told: str) -> None:
    folder = planned(tmp_path, 1)
    ended = call("sweep", *(word.format(sweep=folder.path) for word in words))
    assert ended.status == 2
    assert told in ended.err
    assert len(ended.said) == 1
