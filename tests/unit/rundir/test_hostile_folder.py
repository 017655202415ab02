"""Run folders that somebody sent: what is in them leads nowhere else, and one bad one does not hide the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from mrc_testbed.testbed import whole_files
from mrc_testbed.testbed.rundir.ownership import OWNER
from mrc_testbed.testbed.whole_files import open_new, write_whole
from tests.unit.calls import Call
from tests.unit.recorded import record_run
from tests.unit.sweep.swept import planned

FILES = ("report.html", "verdict.json", "junit.xml", "summary.txt", "recovery.json", "history.jsonl", "events.jsonl")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return record_run(tmp_path / "results" / "20260801T000000Z-small")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """What a link leads to."""
    path = tmp_path / "precious"
    path.write_text("dear")
    return path


def link(run: Path, name: str, precious: Path) -> None:
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(precious)


def killed(run: Path) -> None:
    """As a run that ended without its supervisor."""
    (run / OWNER).write_text(json.dumps({"pid": 1, "started": 1, "boot": "another"}))


@pytest.mark.parametrize("name", FILES)
def test_report_writes_through_no_link(call: Call, run: Path, precious: Path, name: str) -> None:
    link(run, name, precious)
    ended = call("report", str(run))
    assert ended.status != 0
    assert f"{run / name}: is a link; a run folder holds plain files alone: remove it" in ended.err
    assert precious.read_text() == "dear"


@pytest.mark.parametrize("name", FILES)
def test_clean_writes_through_no_link(call: Call, run: Path, precious: Path, name: str) -> None:
    link(run, name, precious)
    killed(run)
    ended = call("clean", "--out", str(run.parent))
    assert "is a link" in ended.out + ended.err
    assert precious.read_text() == "dear"


def test_a_folder_that_is_a_link_is_no_folder_of_the_run(call: Call, run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (run / "pcap").symlink_to(elsewhere)
    assert "is a link" in call("report", str(run)).err
    assert not list(elsewhere.iterdir())


def a_fifo(run: Path) -> None:
    (run / "verdict.json").unlink()
    os.mkfifo(run / "verdict.json")


def an_endless_file(run: Path) -> None:
    link(run, "verdict.json", Path("/dev/zero"))


def deep_brackets(run: Path) -> None:
    (run / "verdict.json").write_text("[" * 100_000)


def no_number(run: Path) -> None:
    (run / OWNER).write_text('{"pid": "net", "started": 1, "boot": 2}')


@pytest.mark.timeout(30)
@pytest.mark.parametrize("damage", [a_fifo, an_endless_file, deep_brackets, no_number])
def test_a_bad_folder_has_its_line_and_the_others_theirs(call: Call, run: Path, damage: Callable[[Path], None]) -> None:
    other = record_run(run.parent / "20260802T000000Z-other")
    damage(run)
    ended = call("results", str(run.parent))
    assert ended.status == 0
    assert run.name in ended.out
    assert other.name in ended.out


def test_a_file_is_made_anew_where_a_link_was(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "mine").symlink_to(precious)
    (tmp_path / "yours").symlink_to(precious)
    with open_new(tmp_path / "mine") as file:
        file.write(b"new")
    write_whole(tmp_path / "yours", "new")
    assert [(tmp_path / name).read_text() for name in ("precious", "mine", "yours")] == ["dear", "new", "new"]


def test_two_that_write_a_file_at_once_both_leave_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins and ends while the first has its file open, as two commands on one cache may."""
    file = tmp_path / "list.json"

    def opened_beside_another(path: Path) -> IO[bytes]:
        monkeypatch.setattr(whole_files, "open_new", open_new)
        opened = open_new(path)
        write_whole(file, "second")
        assert file.read_text() == "second"
        return opened

    monkeypatch.setattr(whole_files, "open_new", opened_beside_another)
    write_whole(file, "first")
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]


# --- a sweep ---


def rewritten(folder: Path, **changes: object) -> None:
    """The first cell of a sweep, as somebody wrote it by hand."""
    first, *others = (folder / "cells.jsonl").read_text().splitlines()
    lines = [json.dumps(json.loads(first) | changes), *others]
    (folder / "cells.jsonl").write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    "changes",
    [
        *({"id": name} for name in ("../../precious", "/etc", "..", "a/b", "", 7, None, "0123456789AB")),
        *({"plugins": {name: ""}} for name in ("../precious.py", "/etc/x.py", "x", "a\\b.py")),
        {"plugins": ["x.py"]},
    ],
)
@pytest.mark.parametrize("command", ["run", "gather", "matrix"])
@pytest.mark.nightly(keep=13)
def test_names_in_a_sweep_lead_nowhere(tmp_path: Path, call: Call, changes: dict[str, object], command: str) -> None:
    folder = planned(tmp_path, 1).path
    rewritten(folder, **changes)
    ended = call("sweep", command, str(folder))
    assert ended.status == 2
    assert "cells.jsonl: line 1 is no cell; plan it again" in ended.err


@pytest.mark.parametrize("command", ["run", "gather"])
@pytest.mark.parametrize("place", ["cells", "cells/ID", "cells/ID/1", "scenarios", "scenarios/ID"])
def test_a_sweep_writes_and_reads_through_no_link(tmp_path: Path, call: Call, place: str, command: str) -> None:
    sweep = planned(tmp_path, 1)
    link = sweep.path / place.replace("ID", sweep.cells[0].id)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if link.exists():
        link.rename(tmp_path / "was")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    ended = call("sweep", command, str(sweep.path))
    assert ended.status != 0
    assert f"{link}: is a link, which may lead anywhere: remove it" in ended.err
    assert not list(elsewhere.iterdir())


def test_tables_of_a_sweep_are_written_through_no_link(tmp_path: Path, call: Call, precious: Path) -> None:
    folder = planned(tmp_path, 1).path
    for name in ("sweep.parquet", "sweep.csv"):
        (folder / name).symlink_to(precious)
    call("sweep", "gather", str(folder))
    assert precious.read_text() == "dear"
    assert not all((folder / name).is_symlink() for name in ("sweep.parquet", "sweep.csv"))
