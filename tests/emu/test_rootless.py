"""Ordinary users and restricted environments: a run works without root, or one line says why it cannot, before anything
is built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.emu.nobody import NOBODY, as_nobody, folder_of_nobody
from tests.emu.runs import COMMAND, Run, wait_for

FLAP = """
faults:
  - {at: 300ms, link-flap: p0-t0-0:p0-t1-1, period: 600ms, count: 2, duty: 0.4}
"""
FEW_FILES = ["prlimit", "--nofile=64:2048"]
NO_NAMESPACES = 'echo 0 >/proc/sys/user/max_{}_namespaces; exec {} "$0" "$@"'
WITHOUT_RIGHTS = "setpriv --bounding-set -all"
NO_UNSHARE = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
lines = (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
about = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, about, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A filter as containers have it: `unshare` is answered with EPERM."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_of_nobody() as made:
        yield made


def nobody(folder: Path) -> list[str]:
    return [*FEW_FILES, *as_nobody(folder)]


def root_of_a_user_namespace(folder: Path) -> list[str]:
    os.chown(folder, 0, 0)
    return ["unshare", "--user", "--map-root-user"]


def root_without_net_admin(folder: Path) -> list[str]:
    os.chown(folder, 0, 0)
    return ["setpriv", "--bounding-set", "-net_admin"]


def environment_of(run: Run) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("who", [nobody, root_of_a_user_namespace, root_without_net_admin])
@pytest.mark.nightly(keep=1)
def test_a_run_without_root_has_a_verdict_and_says_what_was_lost(
    folder: Path, who: Callable[[Path], list[str]]
) -> None:
    run = Run(folder, steps=12, extra=FLAP, wrapper=who(folder))
    run.finish()
    run.assert_passed_or_machine_was_busy()
    told = environment_of(run)
    assert told["rootless"][0].startswith("no port program: no ECN marks, no trimming, no loss by rule")
    assert (told["switch_ports"], told["capabilities"]["root of the machine"]) == ("plain shaper", False)
    assert "without root  no port program" in run.output
    owners = {path.lstat().st_uid for path in (run.out, run.folder, *run.folder.rglob("*"))}
    assert owners == {NOBODY if who is nobody else 0}


def test_a_folder_that_the_sandbox_could_not_enter_is_refused_before_anything_is_made(folder: Path) -> None:
    folder.chmod(0o700)
    command = ["setpriv", "--bounding-set", "-net_admin", *COMMAND, "run", "scenarios/quickstart.yaml", "--out"]
    ran = subprocess.run([*command, str(folder / "runs")], capture_output=True, text=True, check=False)
    assert ran.stderr.startswith(f"mrc-testbed: --out {folder}/runs: {folder} is closed to a run without root's rights")
    assert (ran.returncode, ran.stderr.count("\n"), list(folder.iterdir())) == (2, 1, [])


@pytest.mark.parametrize("transport", ["roce", "tcp"])
@pytest.mark.nightly
def test_other_transports_need_no_root_either(folder: Path, transport: str) -> None:
    expect = "expect=[qp_errors == 0, bytes_wrong == 0]"
    options = ("--set", f"transport={transport}", "--set", "ecmp.repath=true", "--set", expect)
    run = Run(folder, wrapper=as_nobody(folder), options=options)
    run.finish()
    run.assert_passed_or_machine_was_busy()


def test_kill_9_of_the_outer_process_leaves_nothing_of_a_rootless_run(folder: Path) -> None:
    run = Run(folder, steps=200, wrapper=as_nobody(folder))
    run.wait_until_step(1)
    assert len(run.pids()) > 10
    run.process.send_signal(signal.SIGKILL)
    assert run.finish() == -signal.SIGKILL


@pytest.mark.nightly
def test_ctrl_c_ends_a_rootless_run_with_its_verdict(folder: Path) -> None:
    run = Run(folder, steps=200, wrapper=as_nobody(folder))
    run.wait_until_step(1)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.finish() == 130
    assert run.verdict["verdict"] == "inconclusive"


@pytest.mark.nightly
def test_who_runs_without_root_may_attach_to_the_run_and_root_enters_nothing_of_theirs(folder: Path) -> None:
    run = Run(folder, steps=200, wrapper=as_nobody(folder))
    run.wait_until_step(1)
    commands = ["-c", "h0 ip -6 address show dev lo", "-c", "h0 trace h1"]
    attach = [*COMMAND, "attach", "--out", str(run.out), *commands]
    by_root = subprocess.run(attach, capture_output=True, text=True, check=False)
    by_owner = subprocess.run([*as_nobody(folder), *attach], capture_output=True, text=True, check=False)
    run.process.send_signal(signal.SIGINT)
    run.finish()
    assert by_owner.returncode == 0, by_owner.stderr
    assert "fd00::" in by_owner.stdout
    assert "\n4  h1  " in by_owner.stdout
    assert by_root.returncode == 2
    assert f"{run.folder}: belongs to nobody" in by_root.stderr
    asked = run.folder / "asked.jsonl"
    assert (asked.lstat().st_uid, asked.read_text(encoding="ascii").count("\n")) == (NOBODY, 1)


@pytest.mark.nightly
def test_nobody_else_may_attach_to_a_run_of_root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRC_TRUST_OWNERS", str(NOBODY))  # or root would not write there
    run = Run(folder, steps=200)
    run.wait_until_step(1)
    attach, execute = ["attach", "--out", str(run.out), "-c", "h0 true"], ["exec", "--out", str(run.out), "h0", "true"]
    refused = [
        subprocess.run([*as_nobody(folder), *COMMAND, *words], capture_output=True, text=True, check=False)
        for words in (attach, execute)
    ]
    run.process.send_signal(signal.SIGINT)
    run.finish()
    for one in refused:
        assert one.returncode == 4, one.stderr
        assert "the nodes of this run needs root. Fix: run the same command with sudo" in one.stderr


@pytest.mark.nightly
def test_programs_run_without_root(folder: Path) -> None:
    """In the sandbox's own user namespace; its owner executes more of them."""
    scenario = (
        "name: small\nfabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}\n"
        "workload: [programs: {hosts: all, commands: {h0: [sh, -c, 'touch note; until ping -c 1 h1 && [ -e stop ]; "
        "do sleep 0.2; done']}}]\nexpect: [programs_failed == 0]\n"
    )
    # A device that everybody may open, as most systems have it.
    device = "mount -t tmpfs none /dev/net; mknod -m 666 /dev/net/tun c 10 200"
    *unshare, commands = as_nobody(folder)
    run = Run(folder, scenario=scenario, wrapper=[*unshare, f"{device}; {commands}"])
    words = [
        *as_nobody(folder),
        *COMMAND,
        "exec",
        "--out",
        str(run.out),
        "h0",
        "test -e note && touch stop && hostname",
    ]
    wait_for(lambda: subprocess.run(words, capture_output=True, check=False).stdout == b"h0\n", "the command")
    run.finish()
    run.assert_passed_or_machine_was_busy()


def refused(folder: Path, wrapper: list[str], extra: str = "") -> str:
    """The only line that is said, in place of a run that never began."""
    run = Run(folder, extra=extra, wrapper=wrapper)
    assert run.finish() == 4, run.output + run.errors
    assert not run.out.exists()
    assert run.output == ""
    said = [line for line in run.errors.splitlines() if not line.startswith("warning: ")]
    assert len(said) == 1, said
    return said[0]


def test_a_fault_that_needs_the_port_program_is_refused_without_root(folder: Path) -> None:
    grey = "faults: [{at: 1s, switch-silent: p0-t1-0, for: 1s}]\n"
    assert refused(folder, as_nobody(folder), grey) == (
        "mrc-testbed: fault 'switch-silent-1' (switch-silent) needs the port program, which is missing:"
        " the kernel takes eBPF programs from root of the machine alone. Fix: run with sudo"
    )


def test_too_few_open_files_are_found_before_anything_is_built(folder: Path) -> None:
    said = refused(folder, ["prlimit", "--nofile=64:128", *as_nobody(folder)])
    assert said.startswith("mrc-testbed: small needs 166 open files, and the hard limit (`ulimit -Hn`) is 128. Fix: ")
    assert said.endswith(", or `--virtual`, which needs neither Linux nor root")


@pytest.mark.nightly
def test_the_files_that_a_fabric_is_said_to_need_are_enough(folder: Path) -> None:
    run = Run(folder, steps=12, extra=FLAP, wrapper=["prlimit", "--nofile=64:166", *as_nobody(folder)])
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.parametrize(
    ("kind", "needed", "then"), [("user", "1 user namespace", WITHOUT_RIGHTS), ("net", "12 net namespaces", "")]
)
@pytest.mark.nightly(keep=1)
def test_a_machine_that_allows_no_namespaces_is_told_of(folder: Path, kind: str, needed: str, then: str) -> None:
    wrapper = ["unshare", "--user", "--map-root-user", "sh", "-c", NO_NAMESPACES.format(kind, then)]
    os.chown(folder, 0, 0)
    assert refused(folder, wrapper) == (
        f"mrc-testbed: small needs {needed}, and this machine allows 0 (user.max_{kind}_namespaces)."
        f" Fix: `sudo sysctl user.max_{kind}_namespaces=10000`, or run with sudo,"
        " or `--virtual`, which needs neither Linux nor root"
    )
    doctor = subprocess.run([*wrapper, *COMMAND, "doctor"], capture_output=True, text=True, check=False)
    assert f"this machine allows no {kind} namespaces (user.max_{kind}_namespaces is 0)" in doctor.stdout


@pytest.mark.parametrize("who", [as_nobody, lambda _: []], ids=["nobody", "root"])
@pytest.mark.nightly(keep=1)
def test_a_filter_of_a_container_is_told_of(folder: Path, who: Callable[[Path], list[str]]) -> None:
    said = refused(folder, [*who(folder), sys.executable, "-c", NO_UNSHARE])
    assert "the seccomp filter of a container or service forbids namespaces. Fix: start the container with" in said
    assert said.endswith(", or `--virtual`, which needs neither Linux nor root")
