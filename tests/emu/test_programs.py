"""Programs of the user over the kernel's fabric: they work, they fail in every way, and nothing of them is left."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.emu.runs import COMMAND, DAEMON, Run, wait_for

SHIPPED = Path(__file__).parents[2] / "scenarios/programs/all_reduce.py"
RING = """
name: ring
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
transport: TRANSPORT
workload:
  - programs:
      name: ring
      command: python3 all_reduce.py
      files: [all_reduce.py]
      env: {ROUNDS: "8", WEIGHTS: "4096"}
      step: 'step (\\d+) done'
      steps: 8
      metric: 'loss=(?P<loss>[0-9.]+)'
      timeout: 40s
expect:
  - programs_failed == 0
  - program.loss.last < 10
  - steps_done == 8
"""
CUT = "faults: [{at: 600ms, link-down: 'p0-t0-0:p0-t1-1', for: 500ms, name: cut}]\n"
PAIR = "name: pair\nfabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}\n"


def rows(run: Run, name: str) -> list[dict[str, str]]:
    with (run.folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def output(run: Run, host: str) -> str:
    return (run.folder / f"programs/{host}.log").read_text(encoding="utf-8", errors="replace")


def counters(run: Run) -> dict[str, dict[str, Any]]:
    document = json.loads((run.folder / "counters.json").read_text())
    return {host: each["counters"] for host, each in document["hosts"].items()}


def pair(folder: Path, h0: str, h1: str = "sleep 0", more: str = "", expect: str = "") -> Run:
    commands = json.dumps({"h0": ["sh", "-c", h0], "h1": ["sh", "-c", h1]})
    programs = f"workload:\n  - programs: {{name: mine, commands: {commands}{more}}}\n"
    return Run(folder, scenario=PAIR + programs + expect)


@pytest.mark.parametrize("transport", ["mrc", "roce", "tcp"])
@pytest.mark.nightly(keep=1)
def test_an_all_reduce_over_sockets_ends_with_the_same_weights_everywhere(tmp_path: Path, transport: str) -> None:
    (tmp_path / "all_reduce.py").write_bytes(SHIPPED.read_bytes())
    cut = CUT if transport == "mrc" else ""
    run = Run(tmp_path, scenario=RING.replace("TRANSPORT", transport) + cut)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert len({output(run, host).splitlines()[-1] for host in ("h0", "h1", "h2", "h3")}) == 1
    assert [(end["status"], end["killed"]) for end in rows(run, "programs.csv")] == [("0", "0")] * 4
    assert len(rows(run, "printed.csv")) == 4 * 8
    assert len(rows(run, "completions.csv")) == 4 * 8
    kept = json.loads((run.folder / "environment.json").read_text())["program_files"]
    assert kept == {"all_reduce.py": sha256(SHIPPED.read_bytes()).hexdigest()}


@pytest.mark.nightly
def test_a_program_finds_names_addresses_and_folders_of_its_own(tmp_path: Path) -> None:
    see = (
        "hostname -i; getent ahostsv4 h1; getent ahostsv6 h1; ping -c 3 -i 0.2 h1; ls -A /tmp /dev/shm $HOME; pwd;"
        " ls /sys/class/net; ping -c 1 -W 2 10.64.0.77; echo $MRC_HOST $RANK $WORLD_SIZE $MASTER_ADDR; exit 0"
    )
    run = pair(tmp_path, see, "sleep 2.5", expect="expect: [programs_failed == 0]\n")
    run.finish()
    run.assert_passed_or_machine_was_busy()
    text = output(run, "h0")
    assert "10.64.0.2" in text
    assert "fd00:3::2" in text
    assert "3 packets transmitted, 3 received" in text
    assert "\n/tmp/work\n" in text
    assert "mrc0" in text
    assert "Destination Host Unreachable" in text
    assert "\nh0 0 2 h0\n" in text
    assert counters(run)["h0"]["gateway_unknown"] >= 1


@pytest.mark.timed
def test_whatever_a_program_does_is_told_in_a_line_and_nothing_is_left(tmp_path: Path) -> None:
    """Nine ways to misbehave at once, one a host: each with its status, and the run ends."""
    ways = {
        "h0": ("echo so far; exit 3", "3", "0"),
        "h1": ("kill -SEGV $$", "-11", "0"),
        "h2": ("trap '' TERM; while :; do sleep 1; done", "-9", "1"),
        "h3": ("yes flood", "-15", "1"),
        "h4": ("setsid sleep 1000 & setsid sleep 1000 & exit 0", "0", "0"),
        "h5": ("cat /dev/zero > /tmp/full; echo $? full; exit 4", "4", "0"),
        "h6": ("python3 -c 'x = bytearray(8 << 30)'", "1", "0"),
        "h7": ("umount /tmp || mount -o remount,rw / || date -s 12:00 || reboot -f; exit 7", "7", "0"),
        "h8": ("bomb() { setsid sh -c 'sleep 100' & bomb & bomb; }; bomb", "-9", "1"),
    }
    jobs = "".join(
        f"  - programs: {{name: job-{host}, timeout: 6s, commands: {json.dumps({host: ['sh', '-c', text]})}}}\n"
        for host, (text, _, _) in ways.items()
    )
    fabric = PAIR.replace("hosts_per_t0: 1", "hosts_per_t0: 5").replace("name: pair", "name: wild")
    run = Run(tmp_path, scenario=f"{fabric}workload:\n{jobs}")
    run.finish()
    ends = {end["host"]: (end["status"], end["killed"]) for end in rows(run, "programs.csv")}
    assert ends == {host: (status, killed) for host, (_, status, killed) in ways.items()}
    events = [json.loads(line) for line in (run.folder / "events.jsonl").read_text().splitlines()]
    told = {event["host"]: event["reason"] for event in events if event["event"] == "program_failed"}
    assert told["h0"] == "sh ended with status 3: so far"
    assert told["h1"].startswith("sh was killed by SIGSEGV")
    assert told["h2"].startswith("sh was killed: it was not done within its timeout of 6 s")
    assert told["h8"].startswith("sh was killed: it had more than 512 processes")
    assert "No space left on device" in output(run, "h5")
    assert "MemoryError" in output(run, "h6")
    assert "bytes left out" in output(run, "h3")
    assert len(output(run, "h3")) < 2 << 20


@pytest.mark.timed
@pytest.mark.nightly(keep=1)
def test_what_a_program_left_behind_prints_on_and_delays_no_fault(tmp_path: Path) -> None:
    """It ends, and leaves a child that floods its output, and one that prints now and then and wants to live."""
    now_and_then = "for i in 1 2 3 4; do sleep 0.4; echo alive $i || exit 9; done; echo done > /dev/tcp/h1/9 || :"
    left = f"setsid yes background chatter & setsid bash -c '{now_and_then}' & sleep 0.5; exit 0"
    cut = "faults: [{at: 800ms, link-down: 'p0-t0-0:p0-t1-1', for: 1s, name: cut}]\n"
    run = pair(tmp_path, left, "sleep 2.6", expect=f"{cut}expect: [programs_failed == 0]\n")
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert (run.folder / "programs/h0.log").stat().st_size >= 1 << 20


@pytest.mark.nightly
def test_a_program_that_fails_ends_the_others_of_its_job(tmp_path: Path) -> None:
    run = pair(tmp_path, "echo lost my way >&2; exit 9", "sleep 100")
    assert run.finish() in (1, 3)
    assert {end["host"]: (end["status"], end["killed"]) for end in rows(run, "programs.csv")} == {
        "h0": ("9", "0"),
        "h1": ("-15", "2"),
    }
    assert "lost my way" in run.output


@pytest.mark.nightly
def test_patterns_that_never_match_are_told(tmp_path: Path) -> None:
    expect = "expect: [program.loss.last < 1]\n"
    run = pair(tmp_path, "echo stop 1", more=", step: 'step (.)', metric: 'loss=(?P<loss>.)'", expect=expect)
    run.finish()
    checks = {check["name"]: check for check in run.verdict["checks"]}
    assert (checks["programs printed steps"].get("unbelieved") or checks["programs printed steps"]["status"]) == "fail"
    assert "'step (.)'" in checks["programs printed steps"]["why"]
    assert "no program printed loss" in checks["program.loss.last < 1"]["why"]
    assert checks["data were moved"]["why"] == "" or checks["data were moved"]["status"] != "pass"


def test_a_command_that_is_not_there_ends_before_anything_is_built(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=f"{PAIR}workload:\n  - programs: {{command: no-such-command --help}}\n")
    assert run.finish() == 2
    assert "cannot run no-such-command: there is no such command; install it" in run.errors
    assert not run.out.exists()


def test_kill_9_of_the_command_leaves_no_program(tmp_path: Path) -> None:
    run = pair(tmp_path, "echo step 1; setsid sleep 1000 & sleep 1000", "sleep 1000", more=", step: 'step (.)'")
    run.wait_until_step(0)
    assert run.pids("sleep 1000")
    os.kill(run.process.pid, 9)
    run.finish()
    assert not run.pids()


def test_a_daemon_that_dies_under_a_program_ends_the_run_with_its_name(tmp_path: Path) -> None:
    run = pair(tmp_path, "echo step 1; sleep 1000", "sleep 1000", more=", step: 'step (.)'")
    run.wait_until_step(0)
    (daemon,) = [pid for pid in all_pids() if name_of(pid) == "mrc-h1" and pid in run.pids()]
    os.kill(daemon, 9)
    assert run.finish() == 3
    assert "h1" in run.output + run.errors


def all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.mark.nightly
def test_programs_of_somebody_elses_run_folder_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as soon as this user has run the very same; another file makes it another program."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    (tmp_path / "a").mkdir()
    run = pair(tmp_path / "a", "echo one", more="")
    run.finish()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "others"))
    command = [*COMMAND, "replay", str(run.folder), "--out", str(tmp_path / "b")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "its programs were never run on this machine; read its scenario.yaml" in told.stderr
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode in (0, 1, 3)


@pytest.mark.nightly
def test_a_daemon_that_dies_under_a_program_ends_the_run_by_its_name(tmp_path: Path) -> None:
    both = "echo begun; sleep 1000"
    commands = json.dumps({host: ["sh", "-c", both] for host in ("h0", "h1")})
    run = Run(tmp_path, scenario=f"{PAIR}workload:\n  - programs: {{name: mine, commands: {commands}}}\n")
    wait_for(lambda: any("begun" in log.read_text() for log in run.out.glob("*/programs/h0.log")), "the programs")
    os.kill(run.pids(DAEMON)[0], signal.SIGKILL)
    assert run.finish() == 3  # which also waits until none of its processes is left
    assert "the endpoint daemon was killed by SIGKILL" in " ".join(run.output.split())


@pytest.mark.nightly
def test_datagrams_that_a_program_loses_are_not_the_endpoints(tmp_path: Path) -> None:
    """Some to a port where nobody is, and more than a socket holds, by IPv6 as the fabric is."""
    flood = (
        "import socket, time\nsend = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
        "for turn in range(1500):\n"
        "    send.sendto(bytes(1000), ('fd00:3::2', 5001 + turn % 2))\n    time.sleep(0.001)\n"
    )
    deaf = (
        "import socket, time\nheard = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
        "heard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)\nheard.bind(('::', 5001))\ntime.sleep(4)\n"
    )
    (tmp_path / "flood.py").write_text(flood)
    (tmp_path / "deaf.py").write_text(deaf)
    programs = "{files: [flood.py, deaf.py], commands: {h0: python3 flood.py, h1: python3 deaf.py}}"
    expect = "expect: [programs_failed == 0]\n"
    run = Run(tmp_path, scenario=f"{PAIR}workload:\n  - programs: {programs}\n{expect}")
    run.finish()
    figures = {figure["name"]: figure for figure in run.verdict["fidelity"]["figures"]}
    assert all(figures[name]["ok"] for name in ("socket drops", "unexplained packets", "packets nobody sent")), figures
    assert counters(run)["h1"]["gateway_in"] >= 1000
    run.assert_passed_or_machine_was_busy()
