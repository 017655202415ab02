"""`mrc-testbed exec`: commands on hosts of a run that is going on, from outside and by programs of the run."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.emu.runs import COMMAND, Run, wait_for

SCENARIO = """
name: rooms
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - programs: {name: mine, hosts: [h0, h1, h2], commands: COMMANDS, timeout: 60s}
expect: [programs_failed == 0]
"""
WAITS = "echo it is me > note; while [ ! -e stop ]; do sleep 0.1; done; ping -c 1 h1 > ping"


def going_on(folder: Path, h0: str) -> Run:
    run = Run(folder, scenario=SCENARIO.replace("COMMANDS", json.dumps({"h0": ["sh", "-c", h0]})))
    wait_for(lambda: run.process.poll() is not None or execute(run, "h0", "--", "cat", "note").returncode == 0, "note")
    return run


def words(run: Run, *rest: str) -> list[str]:
    return [*COMMAND, "exec", "--out", str(run.out), *rest]


def execute(run: Run, *rest: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(words(run, *rest), input=typed, capture_output=True, text=True, timeout=30, check=False)


def test_commands_on_hosts_of_a_run(tmp_path: Path) -> None:
    run = going_on(tmp_path, WAITS)
    # Streams and status are those of the command; it runs in the folders of the program that runs there.
    ran = execute(
        run, "h0", "--", "sh", "-c", "cat note -; echo $MRC_HOST $RANK >&2; hostname; exit 7", typed="typed\n"
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "it is me\ntyped\nh0\n", "h0 0\n")
    # Without `--` the words are a line for a shell, as those of ssh.
    assert execute(run, "h1", "echo", "$MRC_HOST", "$RANK", ";", "pwd").stdout == "h1\n/tmp/work\n"
    # The data network by both addresses; the management network beside it.
    for way in ("10.64.0.1", "-6 h2", "h0-mgmt", "h2-mgmt"):
        assert "2 received" in execute(run, "h1", f"ping -i 0.2 -c 2 -W 2 {way}").stdout, way
    # A host that programs do not reach has its own network, and no more.
    ports = execute(run, "h3", "ls /sys/class/net").stdout.split()
    assert {"port0", "port1"} <= set(ports)
    assert not {"mrc0", "mgmt0"} & set(ports)
    for said, rest in {
        "there is no host 'h9' in this run; hosts are h0 to h3": ("h9", "ls"),
        "exec: a command is missing, as in `mrc-testbed exec h3 -- ping -c 1 h5`": ("h1", "--"),
    }.items():
        assert said in execute(run, *rest).stderr, said
    assert execute(run, "h1", "--", "no-such-command").returncode == 127
    assert execute(run, "h0", "touch stop").returncode == 0
    run.finish()
    run.assert_passed_or_machine_was_busy()
    told = [line for line in run.history() if line["op"] == "exec"]
    assert ("h1", "no-such-command") in [(line["hosts"], line["how"]) for line in told]
    over = execute(run, "h0", "--", "true")
    assert (over.returncode, over.stderr) == (2, f"mrc-testbed: {run.out}: no run is going on there\n")


@pytest.mark.nightly
def test_a_client_passes_signals_on_and_takes_its_command_with_it(tmp_path: Path) -> None:
    run = going_on(tmp_path, WAITS)
    trap = "trap 'echo heard; exit 5' INT; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen(words(run, "h1", "--", "sh", "-c", trap), stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdout
        assert asked.stdout.readline() == "ready\n"
        asked.send_signal(signal.SIGINT)
        assert asked.stdout.readline() == "heard\n"
        assert asked.wait() == 5
    stubborn = "trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done; : stubborn"
    with subprocess.Popen(words(run, "h1", "--", "sh", "-c", stubborn), stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdout
        assert asked.stdout.readline() == "ready\n"
        asked.kill()
    wait_for(lambda: not run.pids("stubborn"), "what a killed client had started to be gone")
    with subprocess.Popen(words(run, "h2", "sleep", "1000"), stderr=subprocess.PIPE, text=True) as asked:
        wait_for(lambda: bool(run.pids("sleep 1000")), "the last one to run")
        execute(run, "h0", "touch stop")
        run.finish()
        assert asked.wait() == 3
        assert asked.stderr
        assert asked.stderr.read() == "mrc-testbed: exec: the run is over\n"
    run.assert_passed_or_machine_was_busy()


@pytest.mark.nightly
def test_a_program_starts_others_as_by_rsh(tmp_path: Path) -> None:
    """One that has no program of its own on the host, and one after the other."""
    asks = (
        "mrc-testbed exec h1 'echo $MRC_HOST; cat > got; cat got' < note;"
        " mrc-testbed exec h2 -- sh -c 'exit 4'; echo status $?; mrc-testbed exec h0 -- cat note"
    )
    run = going_on(tmp_path, f"echo it is me > note; sleep 1; {asks}; {WAITS}")
    log = run.folder / "programs/h0.log"
    wait_for(lambda: log.read_text().count("\n") == 4, "its output")
    assert log.read_text() == "h1\nit is me\nstatus 4\nit is me\n"
    execute(run, "h0", "touch stop")
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.nightly
def test_what_is_no_request_is_refused(tmp_path: Path) -> None:
    """By a program that speaks to the socket itself."""
    requests = [b"{}", b"nonsense", b'{"host": "h1", "command": []}', b'{"host": 1}', b"[]", b"\xff"]
    speaks = (
        f"import os, socket\nfor each in [*{requests}, b'[' * 100000]:\n"
        "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "    s.connect(os.environ['MRC_EXEC'])\n"
        "    socket.send_fds(s, [each], [0, 1, 2])\n"
        "    print(s.recv(999).decode())\n"
    )
    run = going_on(tmp_path, WAITS)
    answers = execute(run, "h1", "--", "python3", "-c", speaks).stdout.splitlines()
    assert len(answers) == len(requests) + 1
    assert all(json.loads(answer).keys() == {"error"} for answer in answers)
    execute(run, "h0", "touch stop")
    run.finish()
    run.assert_passed_or_machine_was_busy()


@pytest.mark.nightly
def test_names_at_prompts_mean_mrc0_where_programs_reach(tmp_path: Path) -> None:
    """In a run, and in a shell on the same scenario, through a cut that the prompt itself makes."""
    run = going_on(tmp_path, WAITS)
    ping = ("-c", "h0 ping -c 2 -i 0.3 h2", "-c", "h0 echo h3")
    ran = subprocess.run([*COMMAND, "attach", str(run.folder), *ping], capture_output=True, text=True, check=False)
    assert "64 bytes from 10.64.0.3" in ran.stdout, ran.stderr
    assert not ran.stdout.splitlines()[-1].startswith("10.64."), "h3 has its address in the fabric alone"
    execute(run, "h0", "touch stop")
    run.finish()
    commands = (*ping, "-c", "link p0-t0-0 p0-t1-0 down", "-c", "h0 ping -c 8 -i 0.2 h2 && getent hosts h2-mgmt")
    shell = [*COMMAND, "shell", str(run.scenario), *commands]
    ran = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "64 bytes from 10.64.0.3" in ran.stdout
    assert "10.65.0.3       h2-mgmt" in ran.stdout
    run.assert_passed_or_machine_was_busy()
