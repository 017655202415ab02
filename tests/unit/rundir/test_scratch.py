"""Temporary folders go with their owner, and those of killed ones with the next."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mrc_testbed.testbed.rundir.scratch import CELL, HUNT, LOCK, remove_left, scratch
from tests.unit.calls import Call

HOLDS = """
import sys
from mrc_testbed.testbed.rundir.scratch import CELL, scratch
with scratch(CELL) as made:
    print(made.path, flush=True)
    sys.stdin.read()
"""
LEAVES = """
import os, subprocess, sys
from mrc_testbed.testbed.rundir.scratch import CELL, scratch
with scratch(CELL) as made:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(["sleep", "60"], pass_fds=[made.lock], **quiet)
    print(made.path, flush=True)
    os._exit(9)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_it_is_there_as_long_as_its_owner_wants_it(place: Path) -> None:
    with scratch(CELL) as made:
        assert list(place.iterdir()) == [made.path]
        (made.path / "out").mkdir()
        assert remove_left(CELL) == []
    assert not list(place.iterdir())


def test_what_a_killed_owner_left_goes_with_the_next(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout
        left = Path(owner.stdout.readline().strip())
        with scratch(CELL):
            assert left.exists(), "its owner lives"
        owner.kill()
        owner.wait()
        with scratch(HUNT):
            assert left.exists(), "it is of another kind"
        with scratch(CELL) as made:
            assert [each.name for each in place.iterdir()] == [made.path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not handed on there")
def test_a_child_that_outlives_its_owner_keeps_it(place: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert done.returncode == 9
    assert remove_left(CELL) == []
    holder = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if holds(pid, left / LOCK))
    os.kill(holder, 9)
    end_s = time.monotonic() + 10
    while not remove_left(CELL):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert not left.exists()


def holds(pid: int, path: Path) -> bool:
    try:
        return any(os.path.samefile(each, path) for each in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def test_a_folder_without_a_lock_goes_when_it_is_old(place: Path) -> None:
    old, young = place / f"{CELL}old", place / f"{CELL}young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "scenario.yaml").write_text("")
    os.utime(old, (0, 0))
    assert remove_left(CELL) == [old]
    assert [each.name for each in place.iterdir()] == [young.name]


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_links_and_files_stay(place: Path) -> None:
    real, link, file, held = (place / name for name in ("real", f"{CELL}link", f"{CELL}file", f"{CELL}held"))
    real.mkdir()
    (real / LOCK).write_text("")
    link.symlink_to(real)
    file.write_text("")
    held.mkdir()
    (held / LOCK).symlink_to(real / LOCK)
    assert remove_left(CELL) == []
    assert len(list(place.iterdir())) == 4
    assert (real / LOCK).exists()


@pytest.mark.skipif(sys.platform == "win32" or not hasattr(os, "getuid") or os.getuid() != 0, reason="gives it away")
def test_folders_of_others_stay(place: Path) -> None:
    (place / f"{CELL}theirs").mkdir()
    (place / f"{CELL}theirs" / LOCK).write_text("")
    os.chown(place / f"{CELL}theirs", 65534, 65534)
    assert remove_left(CELL) == []


def test_clean_removes_them_too(place: Path, call: Call) -> None:
    left = place / f"{HUNT}x"
    left.mkdir()
    (left / LOCK).write_text("")
    ended = call("clean", "--out", str(place / "results"))
    assert ended.status == 0
    assert f"{left}: removed" in ended.out.replace("\n", "")
    assert not left.exists()
