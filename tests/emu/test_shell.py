"""Mininet's prompt: on a fabric of its own, on the nodes of a run, typed at, piped into, given single commands."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.emu.runs import COMMAND, Run
from tests.emu.test_sandbox import MARK, await_gone, members
from tests.trapped import MAIN, Trapped

SMALL = ["scenarios/quickstart.yaml", "--set", "fabric.planes=1", "--set", "faults=[]", "--set", "expect=[]"]


def test_the_shell_answers_as_mininet_does() -> None:
    commands = "h0 ping -c1 -W2 h5\np0-t1-2 ip -6 route\nexit\n"
    ran = subprocess.run(
        [*COMMAND, "shell", "scenarios/quickstart.yaml"], input=commands, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "1 received, 0% packet loss" in ran.stdout
    assert "fcbb:bb00:2002::/48  encap seg6local action End flavors next-csid" in ran.stdout
    assert "\x1b" not in ran.stdout, "no colours in what is no terminal"


def test_show_counts_what_has_crossed_a_switch() -> None:
    """A ping and its answer, and one for whose destination the switch has no route."""
    strange = "h0 ip -6 route add fcbb:bb00:2f00::/48 via fe80::3e9 dev port0"
    sent = "h0 ping -c2 -i0.2 -W1 fcbb:bb00:2f00::"
    asked = ("h0 ping -c2 -i0.2 -W2 h5", strange, sent, "show p0-t0-0 srv6 stats", "show p0-t9-0 srv6 stats")
    ran = ask("shell", *SMALL, *(word for command in asked for word in ("-c", command)))
    rows = dict(re.findall(r"^(fcbb:\S+|no SID, dropped) +(\d+) ", ran.stdout, re.MULTILINE))
    assert rows["fcbb:bb00:1000::/48"] == "4", ran.stdout
    assert int(rows["no SID, dropped"]) >= 2
    assert "p0-t9-0 is no switch" in ran.stderr


@pytest.mark.nightly
def test_nothing_of_the_folder_is_run_by_a_fabric_or_by_daemons(tmp_path: Path) -> None:
    trapped = Trapped(tmp_path)
    plain = ["t.yaml", "--set", "world=kernel", "--set", "faults=[]", "--set", "capture=[]"]
    trapped.run(MAIN, "shell", *plain, "-c", "h0 ping -c1 h1")
    said = trapped.run(MAIN, "run", *plain, "--web", status=None)
    assert list((trapped.folder / "results").glob("2*/verdict.json")), said


def test_the_shell_gives_the_terminal_back_as_it_was() -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    command_line = [*COMMAND, "shell", "scenarios/quickstart.yaml"]
    shell = subprocess.Popen(command_line, stdin=theirs, stdout=theirs, env=environment)
    asked = b"h0 echo there${NO_COLOR-, in colour}\n"
    for command in (asked, b"exit\n"):  # what comes before the prompt is for the command on the host
        seen = b""
        while not seen.endswith(b"mininet> "):
            assert select.select([ours], [], [], 30)[0], seen
            seen += os.read(ours, 1 << 16)
        os.write(ours, command)
    assert b"\nthere, in colour" in seen, "as the user's own terminal has it"
    assert shell.wait(timeout=30) == 0
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def ask(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], input=typed, capture_output=True, text=True, check=False)


def test_commands_from_a_pipe_are_not_eaten_by_the_command_before() -> None:
    ran = ask("shell", *SMALL, typed="h0 sleep 0.3\nh1 echo $((40 + 2))\n")
    assert "\nmininet> 42\n" in ran.stdout.replace("mininet> mininet> ", "mininet> "), ran.stdout
    assert ran.returncode == 0


def test_single_commands_print_what_they_print_and_all_of_them_run() -> None:
    ran = ask("shell", *SMALL, "-c", "h0 echo one", "-c", "h0 ls /nonexistent", "-c", "h99 ls", "-c", "h0 echo four")
    assert ran.stdout.splitlines() == ["one", "ls: cannot access '/nonexistent': No such file or directory", "four"]
    assert ran.returncode == 2, "that of the first that fails"
    first, second = ran.stderr.splitlines()
    assert first == "mrc-testbed: h0 ls /nonexistent: status 2"
    assert "h99 ls: unknown command" in second


def test_what_ends_breaks_or_stops_a_shell_is_one_failed_command() -> None:
    odd = [
        "h0 exit 3",
        "h0 kill -9 $$",
        "h0 printf 'a\\177b\\n'",
        "h0 echo it's",
        "h0 cat",
        "sh exit 5",
        "link h0 h1 up",
    ]
    ran = ask("shell", *SMALL, *(word for command in odd for word in ("-c", command, "-c", "h1 echo after")))
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout.count("after\n") == len(odd)
    assert "a\x7fb\n" in ran.stdout
    assert [line.rpartition(": ")[2] for line in ran.stderr.splitlines()] == [
        "status 3", "status 137", "status 2", "status 5", "no link between h0 and h1; `links` lists them",
    ]  # fmt: skip


def test_sigterm_ends_a_prompt_whatever_its_command_does(tmp_path: Path) -> None:
    mark = f"{MARK}=term{os.getpid()}"
    shell = subprocess.Popen(
        [*COMMAND, "shell", *SMALL, "-c", "h0 echo started; sleep 1000", "-c", "h0 echo never"],
        env={**os.environ, MARK: mark.partition("=")[2]}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert shell.stdout is not None
    assert shell.stdout.readline() == "started\n"
    shell.send_signal(signal.SIGTERM)
    out, err = shell.communicate(timeout=20)
    assert (shell.returncode, out, err) == (130, "", "")
    await_gone(mark)


def test_a_link_or_switch_comes_back_as_a_fault_heals_it() -> None:
    link, ping = "link p0-t0-0 p0-t1-1", "h0 ping -c1 -W2 -q h5 | grep -c ' 0% packet loss'"
    # The order in which the kernel lists routes is that of their making.
    shown = [f"{node} ip -6 route show table all | sort; ip -6 neigh | sort; echo =" for node in ("p0-t0-0", "p0-t1-1")]
    changes = [f"{link} down", f"{link} up", f"{link} up", "switch p0-t1-1 stop", "switch p0-t1-1 start"]
    commands = [
        *shown,
        changes[0],
        *shown,
        changes[1],
        *shown,
        ping,
        changes[2],
        changes[3],
        *shown,
        changes[4],
        *shown,
    ]
    ran = ask("shell", *SMALL, *(word for command in commands for word in ("-c", command)))
    assert (ran.returncode, ran.stderr) == (0, "")
    near, far, _, far_down, near_up, far_up, *_, far_off, near_on, far_on, _ = ran.stdout.split("=\n")
    assert far_down != far
    assert len(far_off) < len(far_down)
    assert near_up == near == near_on
    assert far_up == far == far_on


def attached(run: Run, *options: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return ask("attach", str(run.folder), *options, typed=typed)


@pytest.mark.nightly
def test_a_prompt_in_a_run_sees_its_nodes_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=70)
    run.wait_until_step(2)
    views = ("srv6 stats", "queue counters", "queue watermark")
    shows = [word for view in views for word in ("-c", f"show p0-t0-0 {view} -j", "-c", "sh echo =")]
    ran = attached(run, *shows, "-c", "h0 ping -c1 -W2 h1", "-c", "h0 ss -6uan")
    assert ran.returncode == 0, ran.stderr
    assert "1 received" in ran.stdout
    assert ":4791" in ran.stdout, "the endpoint's own socket"
    stats, queues, longest = map(json.loads, ran.stdout.split("=\n")[:3])
    assert stats[0]["MySID"] == "fcbb:bb00:1000::/48"
    assert stats[0]["Packets"] > 100
    assert sum(row["Counter/pkts"] for row in queues) > 100, "read from the port program of the run"
    assert max(row["Bytes"] for row in longest) > 4000
    before = run.pids("mininet:")
    assert attached(run, typed="h0 echo typed\n").stdout.count("typed") == 1
    assert run.pids("mininet:") == before
    run.finish()
    run.assert_passed_or_machine_was_busy()
    over = attached(run)
    assert over.returncode == 2
    assert "this run is over" in over.stderr


@pytest.mark.nightly
def test_a_prompt_ends_with_its_run_and_holds_nothing_of_it(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=1000)
    run.wait_until_step(1)
    mark = f"{MARK}=prompt{os.getpid()}"
    prompt = subprocess.Popen(
        [*COMMAND, "attach", str(run.folder)], env={**os.environ, MARK: mark.partition("=")[2]},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert prompt.stdin is not None
    prompt.stdin.write("h0 sleep 1000\n")
    prompt.stdin.flush()
    deadline = time.monotonic() + 20
    while len(members(mark)) < 2:  # the prompt, and what it started in the fabric
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.process.send_signal(signal.SIGINT)
    run.finish()
    _, err = prompt.communicate(timeout=20)
    assert err == "mrc-testbed: the run is over, and its fabric is gone\n"
    assert prompt.returncode == 3
    await_gone(mark)
