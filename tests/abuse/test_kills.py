"""Runs that are killed at a random moment, as a whole or a process of them: nothing is left, and nobody passes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from mrc_testbed.testbed.rundir.results import run_folders
from tests.abuse.command import COMMAND, assert_in_order, command
from tests.abuse.conftest import SCENARIO, Rounds
from tests.emu.conftest import nothing_left as nothing_left
from tests.emu.runs import Run
from tests.hangs import HANGS_S

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
VIRTUAL = """
name: endless
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 4000, compute: 20ms, allreduce: 64KiB}}]
faults: [{at: 100ms, for: 60s, name: storm, chaos: {link-flap: 2/s}}]
capture: [{links: "h0:*", around: all}]
expect: [qp_errors == 0]
"""


def assert_cleaned(out: Path) -> None:
    """All that was killed gets its verdict, which is no pass, and every command knows what to do with it."""
    for words in (("results",), ("clean",), ("results",), ("clean",)):
        ended = command(*words, "--out", str(out))
        assert_in_order(ended.stdout + ended.stderr)
    for folder in run_folders(out):
        verdict = folder / "verdict.json"
        if verdict.exists():
            assert json.loads(verdict.read_text())["verdict"] == "inconclusive"
        else:
            assert not (folder / "plan.json").exists(), "a run that had begun has no verdict"


@pytest.mark.nightly
def test_a_virtual_run_killed_at_any_moment_is_finished_by_clean(rounds: Rounds, tmp_path: Path) -> None:
    file = tmp_path / "endless.yaml"
    file.write_text(VIRTUAL)
    for number, dice in enumerate(rounds(2)):
        out = tmp_path / str(number)
        words = [COMMAND, "run", str(file), "--out", str(out)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(dice.uniform(0.3, 2.5))
        process.send_signal(dice.choice([signal.SIGKILL, *ENDING]))
        told, _ = process.communicate(timeout=HANGS_S)
        if process.returncode not in (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):  # before it could take them
            assert_in_order(told)
        if out.exists():
            assert_cleaned(out)


def test_several_runs_killed_after_the_first_are_no_pass(tmp_path: Path) -> None:
    """`run --repeat 3 --json` left `pass` and exit code 0 beside two runs that were not made."""
    report, out = tmp_path / "report.json", tmp_path / "results"
    words = ["run", str(SCENARIO), "--virtual", "--repeat", "3", "--json", str(report), "--out", str(out)]
    process = subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until_s = time.monotonic() + 60
    while not report.exists() or json.loads(report.read_text())["runs"][0]["verdict"] == "not run":
        assert process.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.01)
    process.kill()
    process.wait()
    whole = json.loads(report.read_text())
    assert [run["verdict"] for run in whole["runs"]].count("not run") >= 1
    assert (whole["verdict"], whole["exit_code"]) == ("inconclusive", 3)


@pytest.mark.emu
@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="needs root")
def test_a_kernel_run_killed_at_any_moment_leaves_nothing_behind(
    rounds: Rounds, tmp_path: Path, nothing_left: None
) -> None:
    for number, dice in enumerate(rounds(2)):
        run = Run(tmp_path / str(number), steps=1000)
        time.sleep(dice.uniform(0.3, 5))
        _kill_some(run, dice)
        run.finish(timeout_s=60)
        assert_in_order(run.output + run.errors)
        if run.out.exists():
            assert_cleaned(run.out)


def _kill_some(run: Run, dice: Random) -> None:
    """The command, one of its processes by a number, all at once, or as a terminal does it."""
    how, pids = dice.choice(["command", "one", "all", "terminal"]), run.pids()
    print(how, len(pids))  # noqa: T201 - shown of a test that fails
    if how == "command":
        run.process.send_signal(dice.choice([signal.SIGKILL, *ENDING]))
    elif how == "terminal":
        os.killpg(run.process.pid, dice.choice(ENDING))
    else:
        for pid in pids if how == "all" else dice.sample(pids, min(1, len(pids))):
            _end(pid)
        if how == "one":
            time.sleep(1)
            run.process.send_signal(signal.SIGTERM)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
