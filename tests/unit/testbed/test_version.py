"""`mrc-testbed --version`: the commit of a checkout without git, of a wheel, of an address that pip was given."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from mrc_testbed.testbed import version
from mrc_testbed.testbed.version import PLACE, checked_out, commit, version_line
from tests.unit.calls import Call

ONE, OTHER = "1a2b3c4d" * 5, "9f8e7d6c" * 5
BRANCH = "refs/heads/some/branch"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    return path


@pytest.fixture
def git(tmp_path: Path) -> Path:
    """The `.git` of a checkout in tmp_path whose HEAD is on BRANCH."""
    put(tmp_path / "pyproject.toml", "")
    put(tmp_path / ".git/HEAD", f"ref: {BRANCH}")
    return tmp_path / ".git"


def packed(common: Path, branch: str) -> None:
    rows = [f"{OTHER} refs/heads/branch", f"{branch} {BRANCH}", f"{OTHER} refs/tags/v1", f"^{OTHER}"]
    put(common / "packed-refs", "\n".join(["# pack-refs with: peeled fully-peeled sorted ", *rows]))


def test_a_branch_has_a_file(git: Path) -> None:
    put(git / BRANCH, ONE)
    assert checked_out(git.parent) == commit(git.parent) == ONE


def test_a_branch_is_packed(git: Path) -> None:
    packed(git, ONE)
    assert checked_out(git.parent) == ONE


def test_a_file_is_newer_than_what_is_packed(git: Path) -> None:
    packed(git, OTHER)
    put(git / BRANCH, ONE)
    assert checked_out(git.parent) == ONE


@pytest.mark.parametrize("hashed", [ONE, "0123456789abcdef" * 4], ids=["sha1", "sha256"])
def test_head_is_detached(git: Path, hashed: str) -> None:
    put(git / "HEAD", hashed)
    assert checked_out(git.parent) == hashed


def test_a_ref_leads_to_a_ref(git: Path) -> None:
    put(git / BRANCH, "ref: refs/heads/other")
    put(git / "refs/heads/other", ONE)
    assert checked_out(git.parent) == ONE


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("pack", [True, False])
def test_a_worktree_shares_the_refs_of_its_repository(tmp_path: Path, absolute: bool, pack: bool) -> None:
    common, tree = tmp_path / "main/.git", tmp_path / "tree"
    own = common / "worktrees/tree"
    put(common / "HEAD", OTHER)
    put(own / "HEAD", f"ref: {BRANCH}")
    put(own / "commondir", "../..")
    put(tree / ".git", f"gitdir: {own if absolute else '../main/.git/worktrees/tree'}")
    if pack:
        packed(common, ONE)
    else:
        put(common / BRANCH, ONE)
    assert checked_out(tree) == ONE


@pytest.mark.parametrize(
    "head", [f"ref: {BRANCH}", "ref: refs/heads/.invalid", "ref: HEAD", "", "1a2b3c4", "\xff\xfe"], ids=repr
)
def test_what_names_no_commit_is_unknown(git: Path, head: str) -> None:
    (git / "HEAD").write_bytes(head.encode("latin-1"))
    assert checked_out(git.parent) is None


def test_a_worktree_whose_repository_is_gone_is_unknown(tmp_path: Path) -> None:
    put(tmp_path / ".git", "gitdir: /nowhere/at/all")
    assert checked_out(tmp_path) is None


def test_git_says_the_same_of_this_checkout() -> None:
    if shutil.which("git") is None or not (PLACE / ".git").exists():
        pytest.skip("not a checkout, or no git to compare with")
    command = ["git", "-c", "safe.directory=*", "-C", str(PLACE), "rev-parse", "HEAD"]
    assert commit() == subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def installed(monkeypatch: pytest.MonkeyPatch, note: object) -> None:
    """As pip leaves it, with `note` in direct_url.json."""
    text = None if note is None else json.dumps(note)
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))


def test_a_wheel_knows_what_it_was_built_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, {"vcs_info": {"vcs": "git", "commit_id": OTHER}})
    put(tmp_path / "testbed/commit.txt", ONE)
    assert commit(tmp_path) == ONE


def test_packages_in_somebody_elses_repository_are_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, None)
    put(tmp_path / ".git/HEAD", OTHER)
    assert commit(tmp_path) is None


def test_pip_notes_the_commit_of_a_git_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, {"url": "https://example.org/x.git", "vcs_info": {"vcs": "git", "commit_id": ONE}})
    assert commit(tmp_path) == ONE


@pytest.mark.parametrize("note", [None, {"url": "file:///x", "dir_info": {}}, [], {"vcs_info": None}], ids=repr)
def test_nothing_says_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: object) -> None:
    installed(monkeypatch, note)
    assert commit(tmp_path) is None


def test_the_line_has_version_commit_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "commit", lambda: ONE)
    assert version_line() == f"mrc-testbed {metadata.version('mrc-testbed')} (commit 1a2b3c4, {PLACE})"
    monkeypatch.setattr(version, "commit", lambda: None)
    assert version_line().endswith(f"(commit unknown, {PLACE})")


def test_the_command_tells_it_in_one_line(call: Call) -> None:
    told = call("--version")
    assert (told.status, told.err) == (0, "")
    assert re.fullmatch(r"mrc-testbed \S+ \(commit ([0-9a-f]{7}|unknown), /.*\)\n", told.out)
