"""Tab completion: what shells are answered, quickly, and by names alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer import main

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.commands.completion.answers import answers
from mrc_testbed.testbed.commands.completion.command import Shell
from mrc_testbed.testbed.commands.completion.values import sources_of, values

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
FREE = {
    *(
        "-- CMD",
        "-- CMD...",
        "[--] CMD...",
        "0-1",
        "AGE",
        "CMD",
        "FD",
        "SECONDS",
        "FIGURES",
        "I",
        "K",
        "KEY=V1,V2,...",
        "KEY=VALUE",
        "MAP",
    ),
    *(
        "KIND",
        "N",
        "N or N-M",
        "N,...",
        "N/TIME",
        "NAME",
        "NAME,...",
        "P",
        "PLANE/UPLINK",
        "PORT",
        "PROGRAM",
        "RATE",
        "RATE,...",
        "REF,...",
    ),
    *("S", "SEED", "TIME", "URL", "USER", "VIEW...", "WHAT", "WHO", "[HOST:]PORT", "LIMIT", "STEPS"),
}
"""Metavars of values that no list has."""
Answered = Callable[..., list[str]]


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answered:
    """The values that are offered for the last word, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: [line.partition("\t")[0] for line in answers(main.get_command(cli.app), words)]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, and a folder whose name a shell might obey."""
    results = tmp_path / "results"
    for name in ("20260801T000000Z-a", "20260802T000000Z-b", "20260803T000000Z-$(touch x)", "no-run"):
        (results / name).mkdir(parents=True)
        if name != "no-run":
            (results / name / "scenario.yaml").touch()
    (results / "latest").symlink_to("20260802T000000Z-b")
    plan = '{"hosts": [{"name": "h0"}, {"name": "h1"}], "switches": [{"name": "p0-t0-0"}, {"name": "p0-$(x)"}]}'
    (results / "latest" / "plan.json").write_text(plan)
    return results


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("cali", ["calibrate"]),
        ("topo ", ["show"]),
        ("results r", ["rm"]),
        ("lesson so", ["solution"]),
        ("run --se", ["--set", "--seed"]),
        ("run --seed 3 --se", ["--set"]),
        ("run --set a=b --se", ["--set", "--seed"]),
        ("run --seed ", []),
        ("run --junit ", [":files"]),
        ("run --out ", [":folders"]),
        ("run quicks", ["quickstart", ":files"]),
        ("run quickstart --against ", ["baselines", "today", ":files"]),
        ("run -- --se", [":files"]),
        ("scenarios show quicks", ["quickstart"]),
        ("lesson show 04", ["04-three-round-trips"]),
        ("export latest --to ", ["perfetto", "containerlab", "frr", "sonic", "htsim", "flows"]),
        ("plan --nic-cable ", ["optics", "dac"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("--ver", ["--version"]),
        ("nonsense --ver", []),
        ("replay ", [":folders"]),
        ("exec ", []),
        ("exec h0 -", []),
    ],
)
def test_what_fits(answered: Answered, line: str, offered: list[str]) -> None:
    assert answered(*line.split(" ")) == offered


def test_nothing_typed_offers_every_command(answered: Answered) -> None:
    assert answered("") == [*main.get_command(cli.app).commands]  # type: ignore[attr-defined]


def test_runs_and_their_nodes(answered: Answered, runs: Path) -> None:
    names = ["latest", "20260802T000000Z-b", "20260801T000000Z-a"]
    assert answered("replay", "") == [*names, ":folders"]
    assert answered("compare", "latest", "2026") == [*names[1:], ":folders"]
    assert answered("worlds", "2026") == [":files", *names[1:], ":folders"]
    assert answered("exec", "") == ["h0", "h1"]
    assert answered("show", "latest", "p") == ["p0-t0-0"]
    assert answered("show", "20260801T000000Z-a", "p") == []


def test_another_results_folder(answered: Answered, runs: Path) -> None:
    runs.rename(runs.with_name("mine"))
    assert answered("replay", "latest") == [":folders"]
    assert answered("replay", "--out", "mine", "latest") == ["latest", ":folders"]


def parameters(command: Any) -> Iterator[Any]:
    yield from (one for one in command.params if one.param_type_name == "argument" or not one.is_flag)
    for below in getattr(command, "commands", {}).values():
        yield from parameters(below)


def test_every_kind_of_value_is_known() -> None:
    """By its metavar: a new one belongs among those that can be listed, or among the free ones here."""
    root = main.get_command(cli.app)
    unknown = [
        (one.name, one.metavar)
        for one in parameters(root)
        if not one.hidden and (one.metavar or one.name.upper()) not in FREE
        if not sources_of(one) and not values(one, root, [])
    ]
    assert unknown == []


def test_an_answer_loads_little() -> None:
    heavy = "pandas numpy pydantic ruamel.yaml rich mrc_testbed.testbed.runner mrc_testbed.testbed.fabric"
    script = (
        "import sys; sys.argv = ['mrc-testbed', 'completion', 'bash', '--', 'run', 'q']\n"
        "from mrc_testbed.testbed import cli\n"
        "try: cli.main()\n"
        f"finally: print([name for name in {heavy!r}.split() if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ran.stdout.split()[0], ran.stderr.strip()) == ("quickstart", "[]")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path, runs: Path) -> None:
    (tmp_path / "my own.yaml").touch()
    script = (
        "source <(mrc-testbed completion bash)\n"
        'try() { COMP_WORDS=(mrc-testbed "$@"); COMP_CWORD=$#; _mrc_testbed; printf "%s\\n" "${COMPREPLY[@]}"; }\n'
        "try cali; try run my; try replay 20260802"
    )
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["calibrate", "my own.yaml", "20260802T000000Z-b"]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("shell", Shell)
def test_a_script_is_one_of_its_shell(shell: Shell, tmp_path: Path) -> None:
    script = subprocess.run([str(BIN / "mrc-testbed"), "completion", shell], capture_output=True, check=True).stdout
    assert f"mrc-testbed completion {shell} --".encode() in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, check=True, cwd=tmp_path)
