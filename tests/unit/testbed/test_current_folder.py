"""No command runs Python code, or a program, of the folder that it runs in: somebody may have sent that folder."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.isolated import isolated_python, python_command
from tests.trapped import MAIN, Trapped

ROOT = Path(__file__).parents[3]


@pytest.fixture
def trapped(tmp_path: Path) -> Trapped:
    return Trapped(tmp_path)


def test_a_trap_works(trapped: Trapped) -> None:
    with pytest.raises(AssertionError, match="of the folder was run"):
        trapped.run(sys.executable, "-c", "import socket", status=1)


def test_the_machine_is_looked_at(trapped: Trapped) -> None:
    trapped.run(MAIN, "doctor", status=0 if os.geteuid() == 0 else 4)


@pytest.mark.nightly
def test_a_run_is_shown_by_a_process_of_its_own(trapped: Trapped) -> None:
    trapped.run(MAIN, "run", "t.yaml", "--web", "-q")


@pytest.mark.nightly
def test_a_sweep_runs_its_cells_here(trapped: Trapped) -> None:
    trapped.run(MAIN, "sweep", "plan", "t.yaml", "--out", "big")
    trapped.run(MAIN, "sweep", "run", "big", "-q")


def test_a_module_of_ours_starts_without_the_folder(trapped: Trapped) -> None:
    """As the daemons of hosts and the hunters of a worker do."""
    trapped.run(*python_command("mrc_testbed", "--version"))
    trapped.run(*python_command("mrc_testbed.hosts.forker", "0"), status=1)
    trapped.run(*isolated_python(), "import socket")


def test_python_m_mrc_testbed_leaves_the_folder_out(trapped: Trapped, tmp_path: Path) -> None:
    """`python -m` itself imports some modules before any line of ours is run. Those are its caller's."""
    (tmp_path / "nothing.py").write_text("import sys; print(*sys.modules)")
    itself = subprocess.run([sys.executable, "-m", "nothing"], cwd=tmp_path, capture_output=True, text=True, check=True)
    trapped.without("mrc_testbed", *itself.stdout.split()).run(sys.executable, "-m", "mrc_testbed", "schema")


def test_relative_names_in_path_and_pythonpath_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = (
        "from mrc_testbed.testbed.isolated import leave_out_the_current_folder; leave_out_the_current_folder()\n"
        "import json, os, sys; print(json.dumps([sys.path, os.environ['PATH'], os.environ['PYTHONPATH']]))"
    )
    kept = tmp_path / "kept"
    env = {**os.environ, "PYTHONPATH": f":{kept}:{ROOT}:lab", "PATH": ":/usr/bin:.:tools:/bin"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    path, programs, modules = json.loads(done.stdout)
    assert programs == "/usr/bin:/bin"
    assert modules == f"{kept}:{ROOT}"
    assert str(kept) in path
    assert not {"", str(tmp_path), str(tmp_path / "lab")} & set(path)


COMMANDS = {
    "run": [("run t.yaml -q --repeat 2 --jobs 2", 0)],
    "hunt": [("hunt t.yaml --seeds 1 --jobs 1", 0)],
    "validate": [("validate t.yaml --predict", 0)],
    "paper": [("paper --only 99", 2)],
    "scenarios": [],  # reads every shipped scenario, which takes seconds
    "scenarios show": [("scenarios show quickstart", 0)],
    "scenarios copy": [("scenarios copy quickstart mine.yaml", 0)],
    "import": [("import t.yaml --from flows -o imported.yaml", 2)],
    "schema": [("schema t.yaml", 0)],
    "completion": [("completion bash", 0), ("completion bash -- run t", 0)],
    "doctor": [],  # a test of its own
    "calibrate": [("calibrate --show", 2)],
    "topo show": [("topo show t.yaml --svg t.svg", 0)],
    "plan": [("plan --gpus 1024 --nic 800G --planes 8 --switch 51.2T --html plan.html", 0)],
    "shell": [("shell t.yaml -c true", 1)],
    "attach": [("attach", 2)],
    "exec": [("exec h0 -- true", 2)],
    "clean": [("clean", 0)],
    "replay": [("replay latest -q", 0)],
    "report": [("report latest", 0)],
    "metrics": [("metrics latest", 0)],
    "map": [("map latest", 0)],
    "show": [("show latest p0-t0-0 queue counters", 0)],
    "export": [("export latest --to perfetto", 0), ("export latest", 2)],
    "compare": [("compare results/2*", 0)],
    "bounds": [("bounds results/2*", 3)],
    "worlds": [("worlds nothing", 2)],
    "interop": [("interop --only 1 -o m/matrix.html", 0)],
    "bench list": [("bench list", 0)],
    "bench plan": [("bench plan --tests 9.1", 0)],
    "bench run": [("bench run --tests 9.1 --budget 1s --out b", 2)],
    "bench page": [("bench page b", 2)],
    "results": [("results", 0)],
    "results rm": [("results rm --older-than 7d", 0)],
    "incident kinds": [("incident kinds", 0)],
    "incident draw": [("incident draw 1 --out cases", 0)],
    "incident observe": [("incident observe nothing", 2)],
    "incident answer": [("incident answer nothing t.yaml", 2)],
    "incident serve": [("incident serve nothing true", 2)],
    "incident set": [("incident set . --count 1", 2)],
    "incident score": [("incident score nothing", 2)],
    "sweep plan": [("sweep plan t.yaml --out big", 0)],
    "sweep cell": [("sweep cell big --index 0 --of 1", 0)],
    "sweep run": [("sweep run big -q", 0)],
    "sweep matrix": [("sweep matrix big", 0)],
    "sweep gather": [("sweep gather big --tables steps --junit j.xml --json j.json", 0)],
    "sweep keys": [("sweep keys certs", 0)],
    "lesson list": [("lesson list", 0)],
    "lesson show": [("lesson show 2", 0)],
    "lesson start": [("lesson start 2 mine", 0)],
    "lesson check": [("lesson check mine --virtual", 2)],
    "lesson hint": [("lesson hint 2", 0)],
    "lesson solution": [("lesson solution 2", 0)],
    "lesson restore": [("lesson restore mine", 0)],
    "lesson grade": [("lesson grade own --virtual --out grades", 2)],
    "lesson course": [("lesson course term 2", 0)],
    "lesson new": [("lesson new own", 0)],
    "decode": [("decode results/latest/pcap/*.pcapng --limit 2", 0)],
}
"""Every command with what it is called with, in an order in which each finds what it wants, and its exit status."""
STARTING = ("run", "hunt", "clean", "replay", "report", "sweep plan", "sweep cell", "sweep run")
"""Those that start processes of ours, and what they need and leave."""
DRIVER = """\
import os, sys
from mrc_testbed.testbed.isolated import leave_out_the_current_folder
sys.path.insert(0, os.getcwd())
leave_out_the_current_folder()
import glob, json
from mrc_testbed.testbed import cli

def called(line):
    sys.argv = ["mrc-testbed", *(name for word in line.split() for name in (sorted(glob.glob(word)) or [word]))]
    try:
        cli.main()
    except SystemExit as stop:
        return [line, stop.code or 0]

if __name__ == "__main__":
    print(json.dumps([called(line) for line in json.loads(sys.argv[1])]))
"""
"""All of them in one process, which begins as `python -m` begins: with the current folder before everything else."""


@pytest.mark.slow
@pytest.mark.parametrize("names", [STARTING, tuple(COMMANDS)], ids=["what starts processes", "all"])
@pytest.mark.nightly(keep=1)
def test_no_command_imports_from_the_folder(names: tuple[str, ...], trapped: Trapped, tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(DRIVER)
    wanted = [each for name in names for each in COMMANDS[name]]
    said = trapped.run(sys.executable, "-P", str(tmp_path / "driver.py"), json.dumps([line for line, _ in wanted]))
    assert json.loads(said.splitlines()[-1]) == [list(each) for each in wanted], said


def test_these_are_all_commands() -> None:
    assert set(commands()) == set(COMMANDS)


def commands() -> Iterator[str]:
    groups = {"": cli.app, **{f"{group.name} ": group.typer_instance for group in cli.app.registered_groups}}
    for prefix, app in groups.items():
        assert isinstance(app, typer.Typer)
        if app.registered_callback and app.info.invoke_without_command:
            yield prefix.strip()
        for one in app.registered_commands:
            assert one.callback
            yield prefix + (one.name or one.callback.__name__)


def starts_of_python(source: str) -> list[str]:
    """What a source has that starts a Python in a way of its own."""
    found = [f"sys.{node.attr}" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    return [name for name in found if name == "sys.executable"]


def test_one_place_starts_python() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("testbed", "hosts", "topos")
        for path in (ROOT / room).rglob("*.py")
        if "executable" in (text := path.read_text()) and starts_of_python(text)
    }
    assert found == {"testbed/isolated.py"}
