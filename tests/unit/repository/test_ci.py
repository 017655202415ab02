"""The workflow that checks this project: every Python that is promised, limits of time and rights, make targets."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
FILE = ROOT / ".github" / "workflows" / "ci.yml"
CI: dict[str, Any] = YAML(typ="safe").load(FILE.read_text(encoding="utf-8"))
JOBS: dict[str, dict[str, Any]] = CI["jobs"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = JOBS["fast"]["strategy"]["matrix"]["python"]


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def test_it_is_what_github_takes() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_python_that_we_promise_is_tried() -> None:
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in PROJECT["classifiers"]]
    assert [match[1] for match in named if match] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert len(PYTHONS) == 4


def test_a_change_is_linted_and_tested_on_the_kernel_and_a_night_runs_everything() -> None:
    assert {"push", "pull_request", "schedule"} <= CI["on"].keys()
    said = {name: commands(job) for name, job in JOBS.items()}
    assert said["lint"] == "make lint"
    assert said["fast"] == "make test-fast"
    assert said["kernel"] == ".ci/run"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
    assert said["nightly"] == "CI=true make test-nightly"
    by_night = {name for name, job in JOBS.items() if job["if"].startswith("github.event_name == 'schedule'")}
    assert by_night == {"nightly"}


def test_each_job_ends_in_time_and_may_only_read() -> None:
    assert CI["permissions"] == {"contents": "read"}
    assert CI["concurrency"]["cancel-in-progress"] is True
    for name, job in JOBS.items():
        assert "permissions" not in job, name
        assert job["runs-on"] == "ubuntu-24.04", name
        assert 10 <= job["timeout-minutes"] <= 180, name
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == [False], name


def test_every_make_target_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([\w-]+)", "\n".join(map(commands, JOBS.values()))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
