"""The results folder: names of runs, and the link to the latest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.rundir.results import LATEST, began_s, point_latest, run_folder, run_folders, runs_among
from tests.unit.calls import Call

NEW, OLD = "20260102T030405Z-small", "20260101T030405Z-small"


def begun(out: Path, name: str) -> Path:
    """A run folder with nothing but its scenario."""
    folder = out / name
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text("name: small\n")
    return folder


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (NEW, OLD):
        begun(tmp_path / "results", name)
    return Path("results")


def test_a_path_a_bare_name_and_latest_mean_a_folder(out: Path, tmp_path: Path) -> None:
    point_latest(out / NEW)
    elsewhere = begun(tmp_path / "more", "mine")
    for given, meant in (
        (out / OLD, out / OLD),
        (Path(OLD), out / OLD),
        (Path(LATEST), out / NEW),
        (out / LATEST, out / NEW),
        (elsewhere, elsewhere),
    ):
        assert run_folder(given) == meant
    assert run_folder(Path("mine"), tmp_path / "more") == elsewhere


def test_a_folder_here_goes_before_one_in_results(out: Path, tmp_path: Path) -> None:
    (tmp_path / OLD).mkdir()
    assert run_folder(Path(OLD)) == out / OLD, "what is here is no run"
    (tmp_path / OLD / "scenario.yaml").write_text("name: here\n")
    assert run_folder(Path(OLD)) == Path(OLD)


def test_a_link_out_of_the_folder_is_followed_for_reading(out: Path, tmp_path: Path) -> None:
    elsewhere = begun(tmp_path / "more", "mine")
    (out / LATEST).symlink_to(elsewhere)
    assert run_folder(Path(LATEST)) == elsewhere


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (LATEST, "latest: no such run folder here or in results"),
        (f"{OLD}x", rf"here or in results; did you mean '{OLD}'\?$"),
        ("results/none", "^results/none: no such run folder$"),
        ("results", "^results: has no scenario.yaml: not a run folder$"),
        (f"results/{OLD}/scenario.yaml", "no such run folder$"),
        ("", "not a run folder"),
        ("a\0b", "no such run folder"),
    ],
)
def test_what_is_no_run_is_told_in_one_line(out: Path, given: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        run_folder(Path(given))


def test_of_a_pattern_only_runs_are_left_and_each_once(out: Path) -> None:
    point_latest(out / NEW)
    for name, file in (("20260103T030405Z-compare", "compare.json"), ("20260104T030405Z-paper", "paper.json")):
        (out / name).mkdir()
        (out / name / file).write_text("{}\n")
    names = sorted(out.iterdir())
    assert runs_among(names, out) == (
        [out / OLD, out / NEW],
        [
            "results/20260103T030405Z-compare: is a comparison, skipped",
            "results/20260104T030405Z-paper: is a table of figures, skipped",
        ],
    )
    assert runs_among([out / LATEST], out)[0] == [out / LATEST], "alone it means its run"
    assert runs_among([Path("typo"), Path(OLD)], out)[0] == [Path("typo"), Path(OLD)], "and whoever reads it says so"
    with pytest.raises(UsageError, match=r"^20260103T030405Z-compare: is a comparison, not a run$"):
        runs_among([Path("20260103T030405Z-compare")], out)


def test_runs_are_told_by_their_time_oldest_first_and_nothing_else_is_one(out: Path) -> None:
    begun(out, "by-hand")
    os.utime(out / "by-hand" / "scenario.yaml", (began_s(out / OLD) + 60,) * 2)
    (out / "20260103T030405Z-paper").mkdir()
    (out / "file").write_text("")
    point_latest(out / OLD)
    assert [folder.name for folder in run_folders(out)] == [OLD, "by-hand", NEW]
    assert run_folders(out / "nowhere") == []
    with pytest.raises(UsageError, match="file: cannot be read: Not a directory"):
        run_folders(out / "file")


def test_runs_of_one_second_are_told_by_when_they_were_made(out: Path) -> None:
    names = [f"{OLD}-{number}" for number in (2, 10, 3)]
    for made, name in enumerate(names):
        os.utime(begun(out, name) / "scenario.yaml", (2e9 + made,) * 2)
    assert [folder.name for folder in run_folders(out)] == [OLD, *names, NEW]


def test_latest_is_replaced_and_leaves_nothing_beside_it(out: Path) -> None:
    for name in (OLD, NEW, NEW):
        point_latest(out / name)
        assert (out / LATEST).readlink() == Path(name)
    assert sorted(os.listdir(out)) == [OLD, NEW, LATEST]


def test_what_a_user_has_called_latest_stays(out: Path) -> None:
    (out / LATEST).write_text("mine")
    point_latest(out / NEW)
    assert (out / LATEST).read_text() == "mine"


def test_a_link_that_cannot_be_made_does_not_lead_astray(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_latest(out / OLD)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "symlink_to", full)
    with pytest.raises(RunError, match=r"^cannot make the link results/latest: No space left on device$"):
        point_latest(out / NEW)
    assert sorted(os.listdir(out)) == [OLD, NEW]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_the_link_belongs_to_the_user_who_called_sudo(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    point_latest(out / NEW)
    link, run = (out / LATEST).lstat(), (out / NEW).stat()
    assert (link.st_uid, link.st_gid) == (12345, 12346)
    assert run.st_uid == 0, "not through the link"


def test_replay_takes_a_name(out: Path, call: Call) -> None:
    ended = call("replay", OLD)
    assert ended.status == 2
    assert ended.err == f"mrc-testbed: results/{OLD}: has no plan.json: the run ended before it had a plan\n"
    assert "here or in results" in call("replay", "latest").err
