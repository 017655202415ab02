"""A held folder: what is below it is found from what was opened, whatever another user exchanges meanwhile."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.folders import as_held, hold, let_go, require_own
from mrc_testbed.testbed.rundir.files import RecordError, read_json
from mrc_testbed.testbed.whole_files import write_whole
from tests.unit.others import NOBODY, exchanging, folder_of_nobody, needs_root

linux = pytest.mark.skipif(sys.platform != "linux", reason="there alone what is open has a name")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run" / "logs").mkdir(parents=True)
    (tmp_path / "run" / "logs" / "h0.log").write_text("ours")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "h0.log").write_text("secret")
    return tmp_path / "run"


@linux
def test_it_is_a_path_with_its_name(folder: Path) -> None:
    held = hold(folder)
    assert (str(held / "logs"), held, held.parent) == (f"{folder}/logs", folder, folder.parent)
    assert (held / "logs" / "h0.log").read_text() == "ours"
    assert sorted(path.name for path in held.iterdir()) == ["logs"]
    assert [str(path) for path in held.rglob("*.log")] == [f"{folder}/logs/h0.log"]
    with pytest.raises(FileNotFoundError, match=f"{folder}/nothing"):
        (held / "nothing").read_text()


@linux
def test_it_stays_what_was_opened_when_its_name_leads_elsewhere(folder: Path) -> None:
    held = hold(folder)
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(folder.with_name("secret"))
    assert (held / "logs" / "h0.log").read_text() == "ours"
    write_whole(held / "new", "written")
    assert (folder.with_name("moved") / "new").read_text() == "written"
    assert not (folder / "new").exists()
    let_go(folder)
    assert (folder / "h0.log").read_text() == "secret"


@linux
@pytest.mark.parametrize("name", ["logs/h0.log", "link", "inner/link", "../secret/h0.log", "logs/../../secret/h0.log"])
def test_no_link_is_followed_and_nothing_leads_up(folder: Path, name: str) -> None:
    (folder / "inner").mkdir()
    for link in ("link", "inner/link"):
        (folder / link).symlink_to(folder.parent / "secret" / "h0.log")
    held = hold(folder)
    (folder / "logs").rename(folder / "gone")
    (folder / "logs").symlink_to(folder.parent / "secret")
    with pytest.raises(OSError, match=r"."):
        (held / name).read_text()
    with pytest.raises(RecordError):
        read_json(held / name)


@linux
def test_folders_that_were_passed_are_closed_again(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    held = hold(folder)
    for number in range(200):
        (held / f"f{number}").mkdir()
        (held / f"f{number}" / "file").write_text("")
    assert len(os.listdir("/proc/self/fd")) < before + 100
    let_go(folder)


@needs_root
def test_a_user_who_exchanges_a_folder_each_ms_leads_nowhere_else() -> None:
    """A folder and a file, each against a link to what root alone may read."""
    with folder_of_nobody() as place, tempfile.TemporaryDirectory() as name:
        secret = Path(name)
        (secret / "file").write_text("secret")
        (place / "run" / "inner").mkdir(parents=True)
        (place / "run" / "inner" / "file").write_text("ours")
        os.chown(place / "run" / "inner", NOBODY, NOBODY)
        os.chown(place / "run", NOBODY, NOBODY)
        held = hold(place / "run")
        swaps = [(place / "run" / "inner", secret), (place / "run" / "inner" / "file", secret / "file")]
        seen = {"plain": set[str](), "held": set[str]()}
        with exchanging(*swaps):
            ends = time.monotonic() + 2
            while time.monotonic() < ends:
                for kind, path in (("plain", place / "run"), ("held", held)):
                    try:
                        seen[kind].add((path / "inner" / "file").read_text())
                    except OSError:
                        continue
        assert seen == {"plain": {"ours", "secret"}, "held": {"ours"}}


@needs_root
def test_what_belongs_to_another_user_is_refused_unless_they_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    with folder_of_nobody() as place:
        with pytest.raises(UsageError, match=f"{place}: belongs to nobody, who may exchange what is there: do so"):
            require_own(place, "do so")
        monkeypatch.setenv("MRC_TRUST_OWNERS", f"7, {NOBODY}")
        require_own(place, "do so")
        monkeypatch.delenv("MRC_TRUST_OWNERS")
        monkeypatch.setenv("SUDO_UID", str(NOBODY))
        monkeypatch.setenv("SUDO_GID", str(NOBODY))
        require_own(place, "do so")
        place.chmod(0o777)
        with pytest.raises(UsageError, match="every user may exchange what is there"):
            require_own(place, "do so")


@linux
def test_a_relative_name_is_that_of_its_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "run").mkdir(parents=True)
        (tmp_path / name / "run" / "file").write_text(name)
        monkeypatch.chdir(tmp_path / name)
        held = hold(Path("run")) if name == "one" else as_held(Path("run"))
        assert (held / "file").read_text() == name
    monkeypatch.chdir(tmp_path / "one")
    assert as_held(Path("run")) == held
    let_go(Path("run"))
