"""The C library below programs, each one a test (tests/libmrc/program*.c), plain and sanitized."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.hosts.verbs.messages import Given, RecordKind
from tests.workers import shared_folder

from .fake_daemon import FakeDaemon, Faults, Program
from .programs import environment, preloaded, program, run

PLAIN = (
    *("device", "objects", "refusals", "nulls", "states", "attributes", "write", "chain", "unsignaled", "opcodes"),
    *("room", "receives", "many", "overflow", "left", "broken", "channel", "solicited", "unacknowledged", "reader"),
    *("verbs", "fork", "threads", "shared", "life", "again"),
)
THREADED = ("shared", "channel", "unacknowledged", "fork", "again", "write", "threads")
each_kind = pytest.mark.parametrize("kind", ["plain", "address", pytest.param("thread", marks=pytest.mark.nightly)])
SANITIZERS = {"plain": (), "address": ("address", "undefined"), "thread": ("thread",)}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_folder(tmp_path_factory, "programs")


def passes(folder: Path, tmp_path: Path, name: str, kind: str = "plain", **how: Any) -> FakeDaemon:
    """Runs the test of this name; `faults` and `hook` of the daemon."""
    path = program(folder, *SANITIZERS[kind])
    daemon = FakeDaemon(tmp_path / "socket", how.get("faults"))
    with daemon:
        if "hook" in how:
            daemon.on_record = how["hook"](daemon)
        result = run(path, name, daemon)
    assert result.returncode == 0, result.stderr
    assert "Sanitizer" not in result.stderr, result.stderr
    return daemon


@pytest.mark.parametrize("name", PLAIN)
def test_program(name: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, name)


@pytest.mark.parametrize("name", PLAIN)
def test_program_with_addresses_checked(name: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, name, "address")


@pytest.mark.parametrize("name", THREADED)
@pytest.mark.nightly
def test_program_with_threads_checked(name: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, name, "thread")


@pytest.mark.parametrize("name", ["device", "write", "verbs", "threads", "again"])
def test_program_with_the_library_that_is_all_in_one(name: str, folder: Path, tmp_path: Path) -> None:
    with FakeDaemon(tmp_path / "socket") as daemon:
        result = run(preloaded(folder), name, daemon)
    assert result.returncode == 0, result.stderr


def on_port(
    daemon: FakeDaemon, what: Callable[[Program, int], None]
) -> Callable[[Program, RecordKind, dict[str, Any]], None]:
    def hook(sender: Program, kind: RecordKind, values: dict[str, Any]) -> None:
        if kind is RecordKind.QUERY_PORT:
            what(sender, values["port"])

    return hook


def with_events(daemon: FakeDaemon) -> Callable[[Program, RecordKind, dict[str, Any]], None]:
    def what(sender: Program, port: int) -> None:
        if port == 3:
            daemon.raise_async(sender, 10, 3)
        elif port == 4:
            daemon.raise_async(sender, 1, max(daemon.pairs))

    return on_port(daemon, what)


def with_ports_down(daemon: FakeDaemon) -> Callable[[Program, RecordKind, dict[str, Any]], None]:
    daemon.bad_port = {2}

    def what(_: Program, port: int) -> None:
        if port == 4:
            daemon.bad_port = {1, 2, 3, 4}

    return on_port(daemon, what)


def with_end(daemon: FakeDaemon) -> Callable[[Program, RecordKind, dict[str, Any]], None]:
    def what(_: Program, port: int) -> None:
        if port == 4:
            daemon.die()

    return on_port(daemon, what)


@each_kind
@pytest.mark.parametrize("name", ["async", "contexts"])
def test_asynchronous_events(name: str, kind: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, name, kind, hook=with_events)


def test_ports_and_their_mtu(folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, "ports", faults=Faults(limits={"payload_bytes": 3000}), hook=with_ports_down)


@pytest.mark.parametrize("kind", ["plain", "address"])
def test_inline_data_are_copied_when_posted(kind: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, "inline", kind, faults=Faults(delay=0.02))


@pytest.mark.parametrize("kind", ["plain", "address"])
def test_completions_of_a_destroyed_qp_leave_the_cq(kind: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, "destroy", kind, faults=Faults(delay=0.02))


@each_kind
def test_end_of_the_daemon_is_the_end_of_the_device(kind: str, folder: Path, tmp_path: Path) -> None:
    passes(folder, tmp_path, "closing", kind, faults=Faults(deaf=True), hook=with_end)


@each_kind
def test_posting_waits_for_a_daemon_that_is_behind(kind: str, folder: Path, tmp_path: Path) -> None:
    posts = 0

    def be_slow(_: Program, kind: RecordKind, __: dict[str, Any]) -> None:
        nonlocal posts
        posts += kind is RecordKind.POST_SEND
        if kind is RecordKind.POST_SEND and posts in (1, 500):
            time.sleep(0.3)

    passes(folder, tmp_path, "flood", kind, hook=lambda daemon: be_slow)
    assert posts == 1000


def test_attributes_reach_the_daemon(folder: Path, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def keep(_: Program, kind: RecordKind, values: dict[str, Any]) -> None:
        if kind is RecordKind.MODIFY_QP:
            asked.append(values)

    passes(folder, tmp_path, "attributes", hook=lambda daemon: keep)
    init, rtr, rts = asked
    wimm_and_mpr = Given.MPR | Given.MPR_DEST | Given.MAX_WIMM | Given.MAX_WIMM_DEST | Given.CAP
    assert (init["state"], rtr["state"], rts["state"]) == (1, 2, 3)
    assert init["given"] == 0
    assert rtr["given"] == wimm_and_mpr
    assert rts["given"] == wimm_and_mpr | Given.TIMEOUT | Given.RETRY
    assert (rtr["dest_qpn"], rtr["rq_psn"], rtr["path_mtu"], rtr["dgid"][10:12]) == (0x123456, 7, 4096, b"\xff\xff")
    assert (rts["sq_psn"], rts["timeout"], rts["linear"], rts["exp"]) == (0xABCDEF, 20, 5, 25)
    assert (rts["mpr"], rts["mpr_dest"], rts["max_wimm"], rts["max_wimm_dest"], rts["cap"]) == (4, 3, 16, 8, 3)


@pytest.mark.parametrize("where", ["unset", "empty", "nobody", "too long"])
def test_without_a_daemon_there_are_no_devices(where: str, folder: Path, tmp_path: Path) -> None:
    name = {"nobody": str(tmp_path / "none"), "too long": "/" + "x" * 200, "empty": ""}.get(where)
    result = run(program(folder), "absent", None, **({"MRC_TESTBED_SOCKET": name} if name is not None else {}))
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""


def test_an_abstract_socket_is_found(folder: Path) -> None:
    with FakeDaemon(f"@mrc-testbed-test-{os.getpid()}") as daemon:
        result = run(program(folder), "write", daemon)
    assert result.returncode == 0, result.stderr
    assert daemon.seen[0] is RecordKind.HELLO


def test_a_device_has_the_name_that_the_environment_gives(folder: Path, tmp_path: Path) -> None:
    with FakeDaemon(tmp_path / "socket", Faults(refuse={RecordKind.CREATE_QP: (22, "no more")})) as daemon:
        result = run(program(folder), "write", daemon, MRC_TESTBED_DEVICE="mrc7")
    assert result.returncode == 1
    assert "mrc-testbed: mrc7: no more\n" in result.stderr


def test_polls_of_an_empty_cq_wait(folder: Path, tmp_path: Path) -> None:
    """32 polls, and one of them waits 1 ms: more than 32 a millisecond there cannot be, however busy the machine is."""
    with FakeDaemon(tmp_path / "socket") as daemon:
        waiting = run(program(folder), "waits", daemon)
        assert float(waiting.stdout) <= 33
        spinning = [run(program(folder), "waits", daemon, MRC_TESTBED_POLL="spin") for _ in range(5)]
    assert max(float(each.stdout) for each in spinning) > 33


def test_a_child_does_not_keep_the_connection_of_its_parent(folder: Path, tmp_path: Path) -> None:
    with FakeDaemon(tmp_path / "socket") as daemon:
        command = [str(program(folder)), "fork_alone"]
        with subprocess.Popen(
            command, env=environment(daemon), stdout=subprocess.PIPE, start_new_session=True
        ) as parent:
            try:
                assert parent.stdout is not None
                assert parent.stdout.readline() == b"ready\n"
                parent.kill()
                parent.wait()
                gone = until(lambda: not daemon.programs)
            finally:
                os.killpg(parent.pid, signal.SIGKILL)
    assert gone


def until(condition: Callable[[], bool]) -> bool:
    for _ in range(600):
        if condition():
            return True
        signal.sigtimedwait([], 0.05)
    return False
