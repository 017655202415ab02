"""Root in folders that another user exchanges each millisecond: nothing is written or run that is theirs."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.rundir.ownership import OWNER
from mrc_testbed.testbed.runner.plugins import note_hashes
from mrc_testbed.testbed.runner.program_files import ProgramFiles
from mrc_testbed.testbed.scenario import load_recorded, load_scenario
from tests.unit.calls import Call
from tests.unit.others import NOBODY, exchanging, folder_of_nobody, needs_root
from tests.unit.recorded import record_run

pytestmark = needs_root
TINY = """
name: tiny
world: virtual
fabric: {planes: 1, t0_groups: 1, t1: 1, hosts_per_t0: 2}
workload: [{write: {from: h0, to: h1, bytes: 64KiB}}]
"""
PROGRAMS = """
name: tiny
fabric: {planes: 1, t0_groups: 1, t1: 1, hosts_per_t0: 2}
workload: [programs: {hosts: all, command: [sh, mine.sh], files: [mine.sh]}]
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of the other user."""
    with folder_of_nobody() as made:
        yield made


@pytest.fixture
def dear() -> Iterator[Path]:
    """Where the other user would lead root."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path / "tiny.yaml"


def given(*paths: Path) -> None:
    for path in paths:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@pytest.mark.parametrize("words", ["run FILE --out", "sweep plan FILE --out", "lesson start 2"])
def test_no_command_writes_into_a_folder_of_another_user(
    place: Path, dear: Path, tiny: Path, call: Call, words: str
) -> None:
    out = place / "results"
    out.mkdir()
    given(out)
    with exchanging((out, dear)):
        ends = time.monotonic() + 0.5
        while time.monotonic() < ends:
            ended = call(*words.replace("FILE", str(tiny)).split(), str(out))
            assert ended.status == 2
            assert "belongs to nobody" in ended.err
            assert f"MRC_TRUST_OWNERS={NOBODY} in the environment trusts that user" in ended.err
    assert not list(dear.iterdir())
    assert not list(out.iterdir())


def test_a_folder_of_root_on_the_way_of_another_user_can_be_exchanged_too(place: Path, tiny: Path, call: Call) -> None:
    (place / "results").mkdir()
    assert f"{place}: belongs to nobody" in call("run", str(tiny), "--out", str(place / "results")).err
    assert f"{place}: belongs to nobody" in call("topo", "show", str(tiny), "--svg", str(place / "a" / "x.svg")).err


def test_it_is_written_into_where_its_owner_is_trusted(
    place: Path, tiny: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for trusted in (str(NOBODY), "all"):
        monkeypatch.setenv("MRC_TRUST_OWNERS", trusted)
        assert call("run", str(tiny), "--out", str(place / "results"), "-q").status == 0


def test_a_folder_that_all_or_a_group_may_write_to_is_no_own_one(tmp_path: Path, tiny: Path, call: Call) -> None:
    out = tmp_path / "results"
    out.mkdir()
    out.chmod(0o777)
    assert "every user may exchange what is there" in call("run", str(tiny), "--out", str(out)).err
    out.chmod(0o1777)
    assert call("run", str(tiny), "--out", str(out), "-q").status == 0
    out.chmod(0o775)
    os.chown(out, 0, NOBODY)
    assert "its group may exchange what is there" in call("run", str(tiny), "--out", str(out)).err


def test_links_on_the_way_are_looked_at_too(place: Path, tmp_path: Path, tiny: Path, call: Call) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (place / "link").symlink_to(ours)
    (tmp_path / "link").symlink_to(ours)
    assert "belongs to nobody" in call("run", str(tiny), "--out", str(place / "link")).err
    assert call("run", str(tiny), "--out", str(tmp_path / "link"), "-q").status == 0
    assert "latest" in os.listdir(ours)


def test_what_is_judged_of_a_program_is_what_is_run(place: Path, tmp_path: Path) -> None:
    """The user exchanges the file with another one, between the look and the copy as at any time."""
    (tmp_path / "mine.sh").write_text("echo known")
    (tmp_path / "mine.yaml").write_text(PROGRAMS)
    note_hashes([ProgramFiles.read(load_scenario(tmp_path / "mine.yaml"), None)._digest()])
    run = place / "20260801T000000Z-tiny"
    (run / "programs").mkdir(parents=True)
    (run / "scenario.yaml").write_text(PROGRAMS)
    (run / "programs/mine.sh").write_text("echo known")
    (run / "programs/mine.sh.link").write_text("echo evil")
    given(run, run / "programs")
    scenario, kept = load_recorded(run), set()
    with exchanging((run / "programs/mine.sh", tmp_path)):
        for turn in range(300):
            try:
                programs = ProgramFiles.read(scenario, run)
                programs.require_consent()
                programs.keep(tmp_path / f"{turn}")
            except (UsageError, RunError):
                continue
            kept.add((tmp_path / f"{turn}/programs/mine.sh").read_text())
    assert kept == {"echo known"}


def test_runs_of_students_land_beside_the_table_where_root_grades(
    place: Path, dear: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their `runs` may lead anywhere the next moment."""
    monkeypatch.chdir(tmp_path)
    eve = place / "eve"
    assert call("lesson", "start", "2", "eve").status == 0
    (tmp_path / "eve").rename(eve)
    (eve / "runs").mkdir()
    given(eve, *eve.iterdir())
    with exchanging((eve / "runs", dear)):
        for _ in range(3):
            assert call("lesson", "grade", str(eve), "--virtual", "--out", "graded").status == 0
    assert not list(dear.iterdir())
    assert not list((eve / "runs").iterdir())
    for path in (eve / "runs", eve / "runs.link"):
        path.unlink() if path.is_symlink() else path.rmdir()
    assert call("lesson", "grade", str(eve), "--virtual", "--out", "graded").status == 0
    assert not (eve / "runs").exists()
    assert [path.name for path in (tmp_path / "graded/runs").iterdir()] == ["eve-02-eight-small-ports"]


@pytest.mark.parametrize("command", ["show RUN", "report RUN", "compare RUN RUN --out OUT", "map RUN", "metrics RUN"])
def test_who_reads_a_run_of_another_user_reads_nothing_else(place: Path, dear: Path, call: Call, command: str) -> None:
    """The run and its files lead to what root alone may read, every other moment."""
    run = record_run(place / "20260801T000000Z-small")
    for path in run.iterdir():
        (dear / path.name).write_text("secret of root")
    given(run, *run.iterdir())
    before = {path.name for path in run.iterdir()}
    files = [(run / name, dear / name) for name in ("verdict.json", "summary.txt", "events.jsonl", "environment.json")]
    with exchanging((run, dear), *files):
        for _ in range(20):
            ended = call(*command.replace("RUN", str(run)).replace("OUT", str(dear / "out")).split())
            assert "secret" not in ended.out + ended.err
    shutil.rmtree(dear / "out", ignore_errors=True)
    real = next(path for path in (run, run.with_name(f"{run.name}.link")) if not path.is_symlink())
    assert {path.name.removesuffix(".link") for path in real.iterdir()} == before
    assert sorted({path.read_text() for path in dear.iterdir()}) == ["secret of root"]


def test_no_option_makes_a_folder_at_the_root(tiny: Path, call: Call) -> None:
    ended = call("topo", "show", str(tiny), "--svg", "/nosuch-folder/x.svg")
    assert ended.status == 2
    assert "--svg /nosuch-folder/x.svg: cannot be written: there is no folder /nosuch-folder" in ended.err
    assert not Path("/nosuch-folder").exists()


@pytest.mark.parametrize("command", ["clean --out OUT", "report OUT/20260801T000000Z-small"])
def test_no_verdict_or_page_is_written_into_a_run_of_another_user(place: Path, call: Call, command: str) -> None:
    run = record_run(place / "20260801T000000Z-small")
    (run / OWNER).write_text(json.dumps({"pid": 1, "pid_since": "1", "pid_namespace": "another"}))
    (run / "verdict.json").unlink()
    given(run, *run.iterdir())
    before = sorted(run.iterdir())
    ended = call(*command.replace("OUT", str(place)).split())
    assert ended.status != 0
    assert f"{place}: belongs to nobody" in ended.out + ended.err
    assert "remove" not in ended.out + ended.err
    assert sorted(run.iterdir()) == before


@pytest.mark.parametrize("words", ["sweep run", "sweep gather", "lesson restore"])
def test_nothing_is_brought_together_or_begun_again_in_a_folder_of_another_user(
    place: Path, tmp_path: Path, tiny: Path, call: Call, words: str
) -> None:
    made = tmp_path / "made"
    begin = (
        ["lesson", "start", "2", str(made)] if "lesson" in words else ["sweep", "plan", str(tiny), "--out", str(made)]
    )
    assert call(*begin).status == 0
    made = made.rename(place / "theirs")
    given(made, *made.rglob("*"))
    before = sorted(made.rglob("*"))
    ended = call(*words.split(), str(made))
    assert ended.status == 2
    assert f"{place}: belongs to nobody" in ended.err
    assert sorted(made.rglob("*")) == before
