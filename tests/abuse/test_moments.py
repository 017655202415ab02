"""Commands that start processes are stopped at a random moment, by whatever signal: nothing of them is left.

`--abuse-moments 200`: 200 moments of each command; usual: one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.incidents.case import make_case
from mrc_testbed.testbed.incidents.draw import draw_case
from tests.abuse.command import command
from tests.abuse.conftest import Rounds
from tests.abuse.marked import MarkedCommand, assert_whole
from tests.emu.conftest import nothing_left as nothing_left

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LATEST_S = 3.0
SCATTER = """
setsid sh -c "setsid sleep 600 & exec sleep 600" &
sleep 600 &
"""
ENDLESS = """
name: endless
world: WORLD
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}
controller: {after: 50ms, command: /bin/sh scatter.sh}
workload: [{train: {hosts: all, steps: 4000, compute: 20ms, allreduce: 64KiB}}]
faults: [{at: 100ms, link-down: "p0-t0-0:p0-t1-0", for: 60s}]
expect: [qp_errors == 0]
"""
ANSWERS = SCATTER + 'while read -r line; do echo "{}"; done\n'
ASKS = SCATTER + 'while echo \'{"tool": "now"}\' && read -r line; do sleep 0.1; done\n'
Words = Callable[[Path], tuple[str, ...]]


def endless(folder: Path, world: str = "virtual") -> str:
    """The file of a run with a program that never ends by itself."""
    (folder / "scatter.sh").write_text(ANSWERS)
    file = folder / "endless.yaml"
    file.write_text(ENDLESS.replace("WORLD", world))
    return str(file)


def run(folder: Path) -> tuple[str, ...]:
    return "run", endless(folder), "--out", "out"


def runs_at_once(folder: Path) -> tuple[str, ...]:
    return "run", endless(folder), "--out", "out", "--repeat", "4", "--jobs", "2"


def bench(folder: Path) -> tuple[str, ...]:
    return "bench", "run", "--tests", "5.1", "--transports", "mrc", "--out", "out", "--jobs", "2"


def serve(folder: Path) -> tuple[str, ...]:
    (folder / "asks.sh").write_text(ASKS)
    return "incident", "serve", os.environ["MRC_TEST_CASE"], "--name", folder.name, "--", "/bin/sh", "asks.sh"


def score_set(folder: Path) -> tuple[str, ...]:
    return "incident", "set", "out", "--count", "50", "--jobs", "2"


def interop(folder: Path) -> tuple[str, ...]:
    (folder / "program.sh").write_text(f"{SCATTER}exec {sys.executable} -m mrc_testbed.hosts.contract\n")
    (folder / "list.json").write_text(json.dumps([{"name": "mine", "program": ["/bin/sh", "program.sh"]}]))
    return "interop", "list.json", "-o", "out/matrix.html"


def hunt(folder: Path) -> tuple[str, ...]:
    return "hunt", "hunts/training", "--seeds", "1000", "--jobs", "2", "--out", "out"


def planned(folder: Path, world: str) -> None:
    """A sweep of runs without a program, which stays on its machine."""
    file = Path(endless(folder, world))
    file.write_text(re.sub("controller: .*", "", file.read_text()))
    ended = command("sweep", "plan", str(file), "--repeat", "4", "--out", "out", cwd=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def sweep(folder: Path) -> tuple[str, ...]:
    planned(folder, "virtual")
    return "sweep", "run", "out", "--jobs", "2"


def kernel_run(folder: Path) -> tuple[str, ...]:
    """With a program on a host, too."""
    file = Path(endless(folder, "kernel"))
    (folder / "lasts.sh").write_text(SCATTER + "while :; do echo here; sleep 1; done\n")
    programs = "workload: [{programs: {commands: {h0: sh lasts.sh}, files: [lasts.sh], timeout: 60s}}]"
    file.write_text(re.sub("workload: .*", programs, file.read_text()))
    return "run", str(file), "--out", "out"


def kernel_bench(folder: Path) -> tuple[str, ...]:
    return *bench(folder)[:-2], "--kernel"


def kernel_sweep(folder: Path) -> tuple[str, ...]:
    planned(folder, "kernel")
    return "sweep", "run", "out"


def kernel_interop(folder: Path) -> tuple[str, ...]:
    """Interop with an endpoint of form B."""
    (folder / "program.sh").write_text(f"{SCATTER}exec {sys.executable} -m mrc_testbed.hosts.contract_daemon\n")
    row = {"name": "mine", "program": ["/bin/sh", "program.sh"], "form": "B"}
    (folder / "list.json").write_text(json.dumps([row]))
    return "interop", "list.json", "-o", "out/matrix.html"


COMMANDS: tuple[Words, ...] = (run, runs_at_once, bench, serve, score_set, interop, hunt, sweep)
ON_KERNEL: tuple[Words, ...] = (kernel_run, kernel_bench, kernel_sweep, kernel_interop)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case that can be served."""
    made = make_case(draw_case(19, "t0-silent", 4.0), tmp_path_factory.mktemp("cases"))
    observe(made)
    return made.folder


def stopped(dice: Random, folder: Path, words: Words) -> None:
    """The command in a folder of its own, stopped at a random moment."""
    folder.mkdir()
    begun = MarkedCommand(folder, *words(folder))
    time.sleep(dice.uniform(0, LATEST_S))
    begun.end(dice.choice(SIGNALS))
    assert_whole(folder)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("words", COMMANDS)
def test_nothing_is_left_whatever_stops_it_and_when(
    moments: Rounds, tmp_path: Path, case: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.setenv("MRC_TEST_CASE", str(case))
    for number, dice in enumerate(moments(1)):
        stopped(dice, tmp_path / str(number), words)


@pytest.mark.emu
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason="needs root")
@pytest.mark.parametrize("words", ON_KERNEL)
def test_nothing_is_left_of_what_is_on_the_kernel(
    moments: Rounds, tmp_path: Path, nothing_left: None, words: Words
) -> None:
    for number, dice in enumerate(moments(1)):
        stopped(dice, tmp_path / str(number), words)
