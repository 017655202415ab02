"""Whatever ends who started a program, nothing of the program lives on, whatever the machine allows to keep it by."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from mrc_testbed.hosts.keeper import NAMESPACE, SUBREAPER
from mrc_testbed.testbed.launcher.start import PASSED, environment, launch
from tests.hangs import HANGS_S
from tests.left import alive, assert_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have process groups alone")
QUIET = (subprocess.DEVNULL, subprocess.DEVNULL, None)
SCATTERED = """
setsid sh -c 'setsid sleep {mark} & (sleep {mark} &) ; sleep {mark}' &
sleep {mark} & echo up; sleep {mark}
"""
"""A shell that starts five, in sessions of their own, and orphans."""
CALLER = """
import subprocess, sys, time
from mrc_testbed.testbed.launcher.start import launch
started = launch(["sh", "-c", sys.argv[1]], (subprocess.DEVNULL, subprocess.PIPE, None))
assert started.process.stdout.readline() == b"up\\n"
time.sleep(0.2)
print(started.kept_by, started.process.pid, flush=True)
if sys.argv[2] == "end":
    started.end()
    print("ended", flush=True)
time.sleep(600)
"""
ALLOWED = ["sh", "-c", 'exec "$0" "$@"']
REFUSED = [
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    'echo 0 >/proc/sys/user/max_pid_namespaces; exec "$0" "$@"',
]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", 'exec "$0" "$@"']
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MACHINES = pytest.mark.parametrize(
    ("machine", "kept_by"),
    [
        pytest.param(ALLOWED, {NAMESPACE}, id="root", marks=AS_ROOT),
        pytest.param(NOBODY, {NAMESPACE, SUBREAPER}, id="nobody", marks=AS_ROOT),
        pytest.param(REFUSED, {SUBREAPER}, id="refused"),
    ],
)


@pytest.fixture
def mark() -> str:
    return f"86{uuid4().int % 10**9}"


def begun(machine: list[str], mark: str, then: str) -> tuple[subprocess.Popen[str], str, int]:
    """A caller whose program is up: how it is kept, and by which process."""
    command = [*machine, sys.executable, "-c", CALLER, SCATTERED.format(mark=mark), then]
    caller = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    assert caller.stdout
    kept_by, _, keeper = caller.stdout.readline().rpartition(" ")
    return caller, kept_by, int(keeper)


@MACHINES
def test_all_that_a_program_has_started_ends_with_it(machine: list[str], kept_by: set[str], mark: str) -> None:
    caller, kept, _ = begun(machine, mark, "end")
    with caller:
        assert kept in kept_by
        assert caller.stdout
        assert caller.stdout.readline() == "ended\n"
        assert caller.stderr
        assert kept == NAMESPACE or f"kept by a {kept} here" in caller.stderr.readline()
        assert [pid for pid in alive(mark) if pid != caller.pid] == []
        caller.kill()


@MACHINES
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_all_ends_with_who_started_it(machine: list[str], kept_by: set[str], mark: str, number: signal.Signals) -> None:
    caller, kept, _ = begun(machine, mark, "wait")
    with caller:
        assert kept in kept_by
        assert len(alive(mark)) > 5
        caller.send_signal(number)
    assert_gone(mark)


@AS_ROOT
def test_all_ends_with_its_keeper(mark: str) -> None:
    caller, kept, keeper = begun(ALLOWED, mark, "wait")
    with caller:
        assert kept == NAMESPACE
        os.kill(keeper, signal.SIGKILL)
        until_s = time.monotonic() + 20
        while [pid for pid in alive(mark) if pid not in (caller.pid, keeper)]:
            assert time.monotonic() < until_s
            time.sleep(0.01)
        caller.kill()


def test_what_orphans_leave_behind_ends_with_the_program_itself(mark: str) -> None:
    launched = launch(["sh", "-c", f"setsid sleep {mark} & exit 7"], QUIET)
    assert launched.wait(HANGS_S) == 7
    assert alive(mark) == []


@pytest.mark.parametrize(("line", "status"), [("exit 3", 3), ("kill -9 $$", -9), ("kill -TERM $$", -15)])
def test_it_ends_as_the_program_ended(line: str, status: int) -> None:
    assert launch(["sh", "-c", line], QUIET).wait(HANGS_S) == status


@pytest.mark.parametrize(("command", "error"), [("/nowhere", FileNotFoundError), ("/etc/passwd", PermissionError)])
def test_what_cannot_be_started_is_an_error_of_the_system(command: str, error: type[OSError]) -> None:
    with pytest.raises(error):
        launch([command], QUIET)


def said_by(text: str, control: int | None = None) -> bytes:
    program = launch([sys.executable, "-c", text], (subprocess.DEVNULL, subprocess.PIPE, None), control=control)
    assert program.process.stdout
    with program.process.stdout as output:
        said = output.read()
    program.wait(HANGS_S)
    return said


def test_no_descriptor_of_the_caller_is_there(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        assert said_by("import os; print(len(os.listdir('/proc/self/fd')))") == b"4\n", "the fourth is the folder"


def test_a_control_channel_is_descriptor_3(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    said_by("import os; os.write(3, b'here')", control=write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as channel:
        assert channel.read() == b"here"


def test_variables_are_those_that_are_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_TOKEN", "LC_TIME", "WANTED", "ALSO_WANTED", "MRC_TRUST_PLUGINS"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv(PASSED, "WANTED, ALSO_*")
    kept = environment(own="1")
    assert {"LC_TIME", "WANTED", "ALSO_WANTED", "PATH", "own"} <= kept.keys()
    assert not {"API_TOKEN", PASSED, "MRC_TRUST_PLUGINS"} & kept.keys()
    assert said_by("import os; print('API_TOKEN' in os.environ)") == b"False\n"


def test_what_no_kernel_ends_is_ended_by_a_command(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    launch(["true"], QUIET, then=["rm", str(there)]).wait(HANGS_S)
    assert not there.exists()


def test_a_program_that_forks_without_end_ends(mark: str) -> None:
    forks = f"while :; do (exec sleep {mark}) & done"
    launched = launch(["setpriv", "--", "sh", "-c", f"ulimit -u 300 2>/dev/null; {forks}"], QUIET)
    time.sleep(0.3)
    launched.end()
    assert alive(mark) == []
