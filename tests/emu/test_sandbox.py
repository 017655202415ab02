"""Whatever kills a run, the kernel takes all of it down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import sandbox
from mrc_testbed.testbed.fabric.sandbox import call_isolated, run_isolated
from tests.emu.conftest import isolated

MARK = "MRC_SANDBOX_TEST"
BUILDER = """
import os, sys, time
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.families.clos2 import clos2_shape

shape = clos2_shape(2, 2, 2, 1, 25_000_000, 20_000_000)
options = capabilities.choose(capabilities.probe(), shape)

def main():
    fabric = Fabric.build(build_plan(shape), options)
    fabric.verify()
    print("up", flush=True)
    time.sleep(60)
    return 0

sys.exit(run_isolated(main))
"""


def members(mark: str) -> list[int]:
    """Processes that were started with our mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in environment:
                found.append(int(entry.name))
    return sorted(found)


def await_gone(mark: str, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while members(mark):
        assert time.monotonic() < deadline, f"still there: {members(mark)}"
        time.sleep(0.02)


@pytest.mark.parametrize("victim", ["caller", "warden", "supervisor"])
@pytest.mark.nightly(keep=1)
def test_kill_9_leaves_no_process(victim: str) -> None:
    mark = f"{MARK}={victim}{os.getpid()}"
    environment = {**os.environ, MARK: mark.partition("=")[2]}
    caller = subprocess.Popen([sys.executable, "-c", BUILDER], stdout=subprocess.PIPE, text=True, env=environment)
    assert caller.stdout is not None
    assert caller.stdout.readline() == "up\n"
    alive = members(mark)
    assert len(alive) > 10, "caller, warden, supervisor and a shell for each of 10 nodes"
    chain = {"caller": caller.pid, "warden": child_of(caller.pid), "supervisor": child_of(child_of(caller.pid))}
    os.kill(chain[victim], signal.SIGKILL)
    await_gone(mark)
    caller.wait(timeout=10)
    assert caller.returncode != 0


def child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    assert len(children) == 1
    return int(children[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.nightly(keep=1)
def test_a_signal_to_the_caller_alone_interrupts_the_supervisor(number: signal.Signals) -> None:
    mark = f"{MARK}={number.name}{os.getpid()}"
    environment = {**os.environ, MARK: mark.partition("=")[2]}
    caller = subprocess.Popen(
        [sys.executable, "-c", BUILDER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == "up\n"
    caller.send_signal(number)
    _, errors = caller.communicate(timeout=20)
    assert caller.returncode == 130
    assert errors == ""
    await_gone(mark)


def test_a_hangup_that_nohup_keeps_away_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_isolated(lambda: os.kill(os.getpid(), signal.SIGHUP) or 7) == 7
        assert run_isolated(lambda: 7, meanwhile=lambda: os.kill(os.getpid(), signal.SIGHUP)) == 7
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_comes_when_main_is_over_still_ends_the_caller() -> None:
    """The caller alone hears it: between two runs of a batch, the next one must not begin."""

    def main() -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as if it were over
        os.write(write_end, b"1")
        time.sleep(0.5)
        return 0

    def meanwhile() -> None:
        os.read(read_end, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    read_end, write_end = os.pipe()
    assert run_isolated(main, passed_on=(signal.SIGTERM,), meanwhile=meanwhile) == 130


def test_the_status_of_main_comes_back() -> None:
    assert run_isolated(lambda: 7) == 7


def test_the_caller_works_while_main_runs() -> None:
    read_end, write_end = os.pipe()

    def meanwhile() -> None:
        os.write(write_end, b"\7")

    assert run_isolated(lambda: os.read(read_end, 1)[0], meanwhile=meanwhile) == 7


def test_death_by_a_signal_is_told() -> None:
    def main() -> int:
        subprocess.run(["sh", "-c", "kill -9 $PPID"], check=False)
        return 0

    # PID 1 cannot be killed from inside its own namespace: the kernel protects it, as it does init.
    assert run_isolated(main) == 0


def test_call_isolated_returns_json() -> None:
    assert call_isolated(lambda: {"pid": os.getpid()}) == {"pid": 1}


def test_what_a_probe_misses_comes_back_with_its_fix() -> None:
    def lacking() -> None:
        raise MissingCapability("no such thing", "install it")

    with pytest.raises(MissingCapability, match=r"^no such thing\. Fix: install it$"):
        call_isolated(lacking)


def test_a_signal_is_not_lost_while_the_processes_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(function: str, *arguments: object) -> None:
        if function == "unshare":  # in the warden, which has no child yet to pass it on to
            os.kill(os.getpid(), signal.SIGINT)
        call(function, *arguments)

    def main() -> int:
        time.sleep(5)
        return 0

    call = sandbox._call
    monkeypatch.setattr(sandbox, "_call", interrupted)
    assert run_isolated(main) == 130


def test_an_interrupted_probe_is_an_interruption() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_isolated(interrupted)


def test_nothing_outside_is_seen_or_changed() -> None:
    own = os.readlink("/proc/self/ns/net")

    def body() -> None:
        assert os.getpid() == 1
        assert os.readlink("/proc/self/ns/net") != own
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
        assert processes == ["1"]

    isolated(body)
    assert os.readlink("/proc/self/ns/net") == own
