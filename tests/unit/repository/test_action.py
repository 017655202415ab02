"""The GitHub Action, carried out: its steps as the runner would call them, in virtual time."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mrc_testbed.testbed.version import PUBLISHED
from tests.hangs import HANGS_S

ROOT = Path(__file__).parents[3]
ACTION: dict[str, Any] = YAML(typ="safe").load((ROOT / "action" / "action.yml").read_text(encoding="utf-8"))
SMALL = ROOT / "tests/unit/small_virtual.yaml"


class Job:
    """A step of the action in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}

    def __call__(self, step: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        defaults = {"VIRTUAL": "true", "RETRY": "2", "OUT": "out", "PYTHON": sys.executable, "SCENARIOS": ""}
        given = {f"MRC_{name}": value for name, value in (defaults | inputs).items()}
        files = {name: str(path) for name, path in self.files.items()}
        return subprocess.run(
            [sys.executable, str(ROOT / "action" / "run.py"), step],
            cwd=self.folder, env={**os.environ, **given, **files, "RUNNER_TEMP": str(self.folder)},
            capture_output=True, text=True, check=False, timeout=HANGS_S,
        )  # fmt: skip

    @property
    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.files["GITHUB_OUTPUT"].read_text().splitlines())

    @property
    def summary(self) -> str:
        return self.files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def scenario(folder: Path, name: str, expectation: str) -> None:
    text = re.sub(r"^name: .*$", f"name: {name}", SMALL.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^expect:\n(?:  .*\n)*", "", text, flags=re.MULTILINE)
    (folder / f"{name}.yaml").write_text(f"{text}expect:\n  - {expectation}\n")


def test_scenarios_are_run_and_told(job: Job) -> None:
    scenario(job.folder, "a-good", "qp_errors == 0")
    scenario(job.folder, "b-bad", "steps_done == 1")
    done = job("run", SCENARIOS="*-good.yaml\nb-bad.yaml", ARGUMENTS="--seed 3")
    assert done.returncode == 1, done.stderr
    told = job.outputs
    assert (told["exit-code"], told["verdict"]) == ("1", "fail")
    assert json.loads((job.folder / told["results"]).read_text())["runs"][0]["seed"] == 3
    assert "<testsuite" in (job.folder / told["junit"]).read_text()
    rows = re.findall(r"^\| (\w+) \| ([\w-]+) \| (.*) \|$", job.summary, re.MULTILINE)
    assert [row[:2] for row in rows[1:]] == [("pass", "a-good"), ("fail", "b-bad")]
    assert "steps_done == 1" in rows[2][2]
    assert job.summary.count("FAIL  b-bad") == 1, "the summary of what did not pass"


def test_what_cannot_run_has_the_status_of_the_command(job: Job) -> None:
    assert job("run", SCENARIOS="nowhere.yaml").returncode == 2
    assert job.outputs["exit-code"] == "2"
    assert "status 2" in job.summary


def test_a_call_without_a_run_is_not_green(job: Job) -> None:
    scenario(job.folder, "a-good", "qp_errors == 0")
    assert job("run", SCENARIOS="a-good.yaml").returncode == 0
    done = job("run", SCENARIOS="a-good.yaml", ARGUMENTS="--dry-run")
    assert (done.returncode, "::error::" in done.stdout) == (1, True)
    told = job.files["GITHUB_OUTPUT"].read_text().splitlines()
    assert [line for line in told if line.startswith("verdict")] == ["verdict=pass", "verdict=bad input"]


def test_no_module_of_the_workspace_runs_in_place_of_ours(job: Job) -> None:
    scenario(job.folder, "a-good", "qp_errors == 0")
    for name in ("mrc_testbed", "venv", "pip", "json"):
        (job.folder / f"{name}.py").write_text("raise SystemExit('the workspace runs')")
    assert job("run", SCENARIOS="a-good.yaml").returncode == 0
    started = re.findall(r'\[[^\[\]]*"-m"', (ROOT / "action" / "run.py").read_text(encoding="utf-8"))
    assert ['"-P", "-m"' in call for call in started] == [True] * 3


def test_paths_of_windows_stay_whole() -> None:
    action = runpy.run_path(str(ROOT / "action" / "run.py"))
    text = 'cases\\a.yaml "D:\\my cases\\b.yaml"'
    assert action["words_of"](text, windows=True) == ["cases\\a.yaml", "D:\\my cases\\b.yaml"]
    assert action["words_of"]("a\\ b.yaml c", windows=False) == ["a b.yaml", "c"]
    assert action["place_of"]("D:\\cases\\a.yaml:7") == ("D:\\cases\\a.yaml", "7")
    assert action["place_of"]("D:\\cases\\a.yaml") == ("D:\\cases\\a.yaml", "")


@pytest.mark.parametrize(
    ("step", "inputs", "why"),
    [
        ("run", {"VIRTUAL": "yes"}, "neither true nor false"),
        ("set-up", {"VIRTUAL": "false", "VERSION": "0.2.0"}, "that of the action"),
    ],
)
def test_wrong_inputs_are_one_line(job: Job, step: str, inputs: dict[str, str], why: str) -> None:
    done = job(step, **inputs)
    assert done.returncode == 1
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_input_is_used_and_every_output_is_made(job: Job) -> None:
    text = (ROOT / "action" / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"\binputs\.([\w-]+)", text))
    assert used == ACTION["inputs"].keys()
    job("run", SCENARIOS="nowhere.yaml")
    assert job.outputs.keys() == ACTION["outputs"].keys()
    given = {name for step in ACTION["runs"]["steps"] for name in step.get("env", {}) if name.startswith("MRC_")}
    read = set(re.findall(r'given\("(\w+)"\)', (ROOT / "action" / "run.py").read_text(encoding="utf-8")))
    assert given == {f"MRC_{name}" for name in read}


def test_the_page_shows_the_action_with_inputs_that_it_has() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert set(re.findall(r"mrc-testbed/action@(\S+)", page)) == {f"v{version}" if PUBLISHED else "main"}
    assert set(
        re.findall(r"^\| `([\w-]+)` \|.*\|.*\|$", page.split("## As an action")[1].split("\n## ")[0], re.M)
    ) == set(ACTION["inputs"])
