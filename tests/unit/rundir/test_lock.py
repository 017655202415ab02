"""A run is going on as long as its lock is held: in this process, in others, in other PID namespaces."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.rundir import lock, ownership
from mrc_testbed.testbed.rundir.ownership import LOCK, OWNER, abandoned, being_written, claimed, is_running, writer_of
from mrc_testbed.testbed.rundir.scratch import CELL, remove_left, scratch
from tests.unit.calls import Call
from tests.unit.recorded import record_run

HOLDS = """
import sys
from pathlib import Path
from mrc_testbed.testbed.rundir.ownership import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
TINY = """
name: tiny
fabric: {planes: 1, t0_groups: 1, t1: 1, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{write: {pairs: [h0->h1], for: 1s}}]
"""
ASKS = "import sys; from mrc_testbed.testbed.cli import main; sys.argv[0] = 'mrc-testbed'; main()"
IN_ANOTHER_PID_NAMESPACE = ("unshare", "--fork", "--pid", "--kill-child")
IN_A_CONTAINER = ("unshare", "--fork", "--pid", "--kill-child", "--mount-proc")
needs_root = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="makes namespaces")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return record_run(tmp_path / "results" / "20260801T000000Z-small")


@contextmanager
def held_elsewhere(folder: Path, *prefix: str) -> Iterator[subprocess.Popen[str]]:
    """Another process has claimed the folder."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", HOLDS, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    with process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
            process.wait()  # what it began in a namespace has been killed too, and reads no end of its input


def until(holds: Callable[[], bool]) -> None:
    """A process that was killed is gone a moment later."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked_elsewhere(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a container of its own, where numbers of processes mean others."""
    command = [*IN_A_CONTAINER, sys.executable, "-c", ASKS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_goes_on_until_its_process_has_done_with_it(folder: Path) -> None:
    assert not is_running(folder)
    assert not abandoned(folder)
    with claimed(folder):
        assert is_running(folder)
        assert not abandoned(folder)
        assert writer_of(folder) == os.getpid()
    assert not (folder / OWNER).exists()
    assert not (folder / LOCK).exists()
    assert not is_running(folder)
    assert not abandoned(folder)
    assert writer_of(folder) is None


def test_what_ends_by_an_error_is_as_if_it_was_killed(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), claimed(folder):
        raise ZeroDivisionError
    assert abandoned(folder)
    assert writer_of(folder) is None


def test_a_run_of_a_killed_process_is_abandoned(folder: Path) -> None:
    with held_elsewhere(folder) as process:
        assert is_running(folder)
        assert writer_of(folder) == process.pid
        process.kill()
        process.wait()
        assert (folder / LOCK).exists(), "it had no time to take it away"
        assert abandoned(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_runs_on_holds_the_run(folder: Path) -> None:
    """As the supervisor of a run whose caller was killed, until the kernel has ended it too."""
    forks = HOLDS.replace('    print("held"', '    import os\n    if os.fork():\n        os._exit(0)\n    print("held"')
    command = [sys.executable, "-c", forks, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        process.wait()
        assert is_running(folder)
        process.stdin.close()
        until(lambda: not is_running(folder))


def test_another_process_cannot_write_it_meanwhile(folder: Path) -> None:
    with (
        held_elsewhere(folder),
        pytest.raises(RunError, match="another process writes it"),
        being_written(folder),
    ):
        raise AssertionError


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_only_a_plain_file_can_be_held(folder: Path, make: Callable[[Path], object], call: Call) -> None:
    (folder / OWNER).write_text("{}")
    make(folder / LOCK)
    assert call("results", str(folder.parent)).status == 0
    with pytest.raises(RunError, match=r"owner\.lock"), being_written(folder):
        raise AssertionError


@pytest.mark.skipif(sys.platform == "win32", reason="names of open files stay")
def test_a_lock_whose_file_was_taken_away_before_it_was_held_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opened the file while another held it would hold a file without a name, and a third the next one."""
    path = tmp_path / "lock"
    locks: list[Any] = []

    def late(file: int, alone: bool) -> None:
        if not locks:
            path.unlink()
        locks.append(file)
        flock(file, alone)

    flock = lock._lock
    monkeypatch.setattr(lock, "_lock", late)
    with lock.locked(path) as file:
        assert len(locks) == 2
        assert os.path.samestat(os.fstat(file), path.stat())
        assert lock.is_locked(path)
    assert not path.exists()


@needs_root
@pytest.mark.parametrize("prefix", [IN_ANOTHER_PID_NAMESPACE, IN_A_CONTAINER])
def test_a_run_in_another_pid_namespace_is_going_on(folder: Path, call: Call, prefix: tuple[str, ...]) -> None:
    with held_elsewhere(folder, *prefix):
        out = str(folder.parent)
        assert "running" in call("results", out).out
        assert "still going on" in call("results", "rm", folder.name, "--out", out, "--yes").err
        assert "nothing to clean" in call("clean", "--out", out).out
        assert "still going on" in call("report", str(folder)).err
        with pytest.raises(UsageError, match="in another container or on another machine; attach to it there"):
            writer_of(folder)
    until(lambda: abandoned(folder))


@needs_root
@pytest.mark.nightly
def test_a_run_is_seen_from_another_pid_namespace(folder: Path) -> None:
    out = str(folder.parent)
    with claimed(folder):
        assert "running" in asked_elsewhere("results", out).stdout
        assert "still going on" in asked_elsewhere("results", "rm", folder.name, "--out", out, "--yes").stderr
        assert "nothing to clean" in asked_elsewhere("clean", "--out", out).stdout
        assert "in another container" in asked_elsewhere("attach", "--out", out).stderr
    assert "running" not in asked_elsewhere("results", out).stdout


@needs_root
def test_a_run_is_seen_through_another_mount_of_its_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    shell = 'mount --bind "$1" "$2" && exec "$3" -c "$4" results "$2"'
    given = (str(folder.parent), str(tmp_path / "volume"), sys.executable, ASKS)
    with claimed(folder):
        seen = subprocess.run(
            [*IN_A_CONTAINER, "sh", "-c", shell, "sh", *given], capture_output=True, text=True, check=False
        )
    assert "running" in seen.stdout, seen.stderr


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Lustre without the mount option flock, or NFS with nolock."""

    def refused(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(fcntl, "flock", refused)
    ownership._warn_of_no_locks.cache_clear()


@pytest.mark.usefixtures("without_locks")
def test_a_file_system_without_locks_ends_no_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with claimed(folder):
        assert is_running(folder)
        assert writer_of(folder) == os.getpid()
        with pytest.raises(RunError, match="another process writes it"), being_written(folder):
            pass
    assert not is_running(folder)
    assert not (folder / LOCK).exists()
    told = capsys.readouterr().err
    assert told.startswith(f"warning: {folder.parent}: its file system keeps no locks (Function not implemented)")
    assert told.count("\n") == 1


@pytest.mark.usefixtures("without_locks")
def test_a_killed_run_is_known_without_locks(folder: Path) -> None:
    with held_elsewhere(folder) as process:
        assert is_running(folder)
        process.kill()
        process.wait()
        assert abandoned(folder)
    with being_written(folder):
        assert not is_running(folder)


@pytest.mark.usefixtures("without_locks")
def test_a_folder_for_temporary_files_needs_no_lock_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch(CELL) as mine:
        assert remove_left(CELL) == []
        assert mine.path.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_locks")
def test_a_run_without_locks_has_its_verdict(call: Call, tmp_path: Path) -> None:
    tiny = tmp_path / "tiny.yaml"
    tiny.write_text(TINY, encoding="utf-8")
    assert call("run", str(tiny), "--virtual", "-q", "--out", str(tmp_path / "results")).status == 0
