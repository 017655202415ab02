"""One name is importable: `mrc_testbed`. `hosts`, `testbed`, `topos` and `scenarios` are the user's own modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trapped import MAIN, TRAP

NAMES = ("hosts", "testbed", "topos", "scenarios")
SCENARIO = """\
name: t
plugins: [mine.py]
endpoint: {ev_selection: random-spray}
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 10mbit, rtt: 20ms}
workload:
  - train: {steps: 1, compute: 10ms, allreduce: 64KiB}
"""
COMMAND = """\
import json, sys
from mrc_testbed.testbed import cli

sys.argv = ["mrc-testbed", "run", "t.yaml", "--virtual", "-q"]
try:
    cli.main()
except SystemExit as stop:
    assert not stop.code, stop.code
modules = {name: str(getattr(module, "__file__", None)) for name, module in sys.modules.items()}
print(json.dumps(modules))
"""
EXAMPLE = Path(__file__).parents[3] / "docs/examples/random_spray.py"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a scenario and its plugin."""
    (tmp_path / "t.yaml").write_text(SCENARIO)
    (tmp_path / "mine.py").write_text(EXAMPLE.read_text())
    return tmp_path


def called(place: Path, *command: str, **environment: str) -> str:
    """What a command in this folder prints, after success. Its time limit is that of the test: a pure test may have no
    CPU for minutes while kernel tests run (tests/conftest.py)."""
    kept = (name for name in os.environ if not name.startswith("PYTHON") or name == "PYTHONPYCACHEPREFIX")
    env = {name: os.environ[name] for name in kept} | environment
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_other_name_is_importable(tmp_path: Path) -> None:
    program = f"from importlib.util import find_spec; print([each for each in {NAMES} if find_spec(each)])"
    assert called(tmp_path, sys.executable, "-c", program) == "[]\n"


def test_each_file_is_one_module(place: Path) -> None:
    """Were a room importable in two ways, its classes would be there twice, and an `isinstance` would fail."""
    modules = json.loads(called(place, sys.executable, "-c", COMMAND).splitlines()[-1])
    assert not set(NAMES) & modules.keys()
    files = [file for name, file in modules.items() if name.partition(".")[0] == "mrc_testbed"]
    assert len(files) > 100
    assert len(files) == len(set(files))


@pytest.mark.parametrize("main", [(MAIN,), (sys.executable, "-m", "mrc_testbed")], ids=["command", "module"])
@pytest.mark.parametrize("listed", [True, False], ids=["on PYTHONPATH", "in the folder"])
@pytest.mark.nightly(keep=2)
def test_modules_of_the_user_are_left_alone(place: Path, main: tuple[str, ...], listed: bool) -> None:
    """In the folder of a command, and on PYTHONPATH."""
    site = place / "site"
    site.mkdir()
    for folder in (place, site):
        for name in NAMES:
            (folder / f"{name}.py").write_text(TRAP.format(mark=str(place / f"{name} was run")))
    called(place, *main, "run", "t.yaml", "--virtual", "-q", **({"PYTHONPATH": str(site)} if listed else {}))
    assert not list(place.glob("* was run"))


TEST = """\
import hosts


def test_inventory():
    assert hosts.LAB == {"leaf-1": "192.0.2.1"}


def test_fabric(mrc_testbed):
    assert mrc_testbed.run("t.yaml", world="virtual").passed
"""


@pytest.mark.nightly
def test_a_test_finds_the_users_modules_and_our_fixture(place: Path) -> None:
    (place / "hosts.py").write_text('LAB = {"leaf-1": "192.0.2.1"}\n')
    (place / "test_lab.py").write_text(TEST)
    said = called(place, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "2 passed" in said
