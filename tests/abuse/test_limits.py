"""Processes that are short of something: each run ends with a status of its own and a line that says why."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.abuse.command import COMMAND, KNOWN, assert_in_order, command
from tests.abuse.conftest import SCENARIO
from tests.hangs import HANGS_S


def limited(which: int, amount: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(which, (amount, amount))


LIMITS = {
    **{f"files of {size} bytes": limited(resource.RLIMIT_FSIZE, size) for size in (100, 50_000)},
    **{f"{count} open files": limited(resource.RLIMIT_NOFILE, count) for count in (8, 16)},
}


def tried(tmp_path: Path, *words: str, **options: Any) -> str:
    """A run in virtual time; what it said."""
    ended = command("run", str(SCENARIO), "--virtual", "--out", str(tmp_path / "results"), *words, **options)
    told = ended.stdout + ended.stderr
    assert_in_order(told)
    assert ended.returncode in KNOWN, (ended.returncode, told)
    return told


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.nightly(keep=1)
def test_a_limit_of_the_process_is_no_traceback(tmp_path: Path, limit: str) -> None:
    assert tried(tmp_path, preexec_fn=LIMITS[limit])


@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("run", str(SCENARIO)),
        ("run", str(SCENARIO), "--virtual", "--jobs", "2", "--repeat", "2"),
        ("run", str(SCENARIO), "--virtual", "--web"),
        ("hunt", "hunts/training", "--seeds", "2", "--jobs", "1"),
    ],
    ids=lambda words: " ".join(Path(word).name for word in words),
)
@pytest.mark.nightly(keep=1)
def test_eight_open_files_are_no_traceback_in_any_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = command(*words, cwd=tmp_path, preexec_fn=limited(resource.RLIMIT_NOFILE, 8))
    told = ended.stdout + ended.stderr
    assert_in_order(told)
    assert ended.returncode in KNOWN - {0}, (ended.returncode, told)
    assert "open" in told


@pytest.mark.parametrize("megabytes", [140, 40, 80, 120, 160])
@pytest.mark.nightly(keep=1)
def test_too_little_memory_is_said_so(tmp_path: Path, megabytes: int) -> None:
    """`ulimit -v` ended in an internal error, or in OpenBLAS, whose exit status is that of a FAIL. How much is enough
    differs from machine to machine."""
    told = tried(tmp_path, preexec_fn=limited(resource.RLIMIT_AS, megabytes << 20))
    assert "PASS" in told or "memory ran out" in told


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/nowhere", "XDG_STATE_HOME": "/proc/nowhere"},
        {"HOME": "", "PATH": "/nowhere"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "COLUMNS": "1"},
        {"COLUMNS": "x", "LINES": "-3", "TERM": "nonsense"},
        {"SUDO_UID": "-1", "SUDO_GID": "99999999999"},
        {"TMPDIR": "/proc/nowhere"},
        {},
    ],
    ids=str,
)
@pytest.mark.nightly(keep=1)
def test_any_environment_will_do(tmp_path: Path, environment: dict[str, str]) -> None:
    kept = {"PATH": os.environ["PATH"]} if environment != {} else {}
    assert "small" in tried(tmp_path, env={**kept, **environment})


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", ">/dev/full", "2>/dev/full", "<&- >&- 2>&-"])
@pytest.mark.nightly(keep=1)
def test_standard_streams_may_be_closed_or_full(tmp_path: Path, redirection: str) -> None:
    line = f'"$0" run "{SCENARIO}" --virtual --out "{tmp_path}/results" {redirection}'
    ended = shell(line)
    assert_in_order(ended.stdout + ended.stderr)
    assert ended.returncode in KNOWN
    assert list(tmp_path.glob("results/*/verdict.json"))


def shell(line: str, *wrapper: str) -> subprocess.CompletedProcess[str]:
    """The line, in which $0 is the command."""
    words = [*wrapper, "sh", "-c", line, COMMAND]
    return subprocess.run(words, capture_output=True, text=True, timeout=HANGS_S, check=False)


@pytest.mark.parametrize("out", ["/proc/nowhere", "/dev/null", "\udcff", "x" * 300])
@pytest.mark.nightly(keep=1)
def test_a_results_folder_that_cannot_be_is_one_line(tmp_path: Path, out: str) -> None:
    ended = command("run", str(SCENARIO), "--virtual", "--out", out, cwd=tmp_path)
    assert_in_order(ended.stdout + ended.stderr)
    assert ended.returncode in KNOWN


def test_a_working_directory_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    ended = shell(f'mkdir "{gone}"; cd "{gone}"; rmdir "{gone}"; "$0" run "{SCENARIO}" --virtual; exit $?')
    assert_in_order(ended.stdout + ended.stderr)
    assert ended.returncode in KNOWN - {0}


@pytest.mark.emu
@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="needs root")
@pytest.mark.parametrize("size", ["16k", "256k", "1m"])
@pytest.mark.nightly(keep=1)
def test_a_full_disk_ends_a_run_in_a_line(tmp_path: Path, size: str) -> None:
    results = tmp_path / "results"
    results.mkdir()
    capture = "--set 'capture=[{links: links, around: run, snap: 9014B}]'"
    lines = (
        f"mount -t tmpfs -o size={size} tmpfs '{results}'",
        f"\"$0\" run '{SCENARIO}' --virtual {capture} --out '{results}'",
        "ended=$?",
        f"\"$0\" clean --out '{results}'",
        f"\"$0\" results --out '{results}'",
        "exit $ended",
    )
    ended = shell("\n".join(lines), "unshare", "--mount")
    assert_in_order(ended.stdout + ended.stderr)
    assert ended.returncode in KNOWN
    assert not list(results.iterdir()), "mounted for the command alone"
