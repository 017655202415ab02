"""The workflows, those that users copy and our own, and the action: they are sound, and their commands are there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer import main

from mrc_testbed.testbed.cli import app

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / ".github" / "workflows" / "chaos.yml"
SWEEP = ROOT / ".github" / "workflows" / "sweep.yml"
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "action" / "action.yml"
DOCS = (WORKFLOW, SWEEP, ROOT / "docs" / "sweeps.md", ROOT / "docs" / "ci.md", ROOT / "docs" / "commands.md")


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(WORKFLOW.read_text())
    return loaded


def commands(text: str) -> list[list[str]]:
    """Calls of `mrc-testbed` in a text, each as its words after the name."""
    joined = text.replace("\\\n", " ")
    lines = re.findall(r"^[ ]*(?:- run: )?(?:sudo )?mrc-testbed ([^\n`|>]*)", joined, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def assert_known(words: list[str]) -> None:
    """The command that these words call is there, with their options."""
    command: Any = main.get_command(app)
    rest = list(words)
    while hasattr(command, "commands") and (rest or not command.invoke_without_command):
        if rest[0].startswith("-"):  # an option of the whole, such as --version
            break
        assert rest[0] in command.commands, words
        command = command.commands[rest.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    ours = rest[: rest.index("--")] if "--" in rest else rest
    options = [word for word in ours if word.startswith("-") and word != "-"]
    assert set(options) <= known | {"--help"}, words


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_command_and_option_is_there(path: Path) -> None:
    found = commands(path.read_text())
    assert found
    for words in found:
        assert_known(words)


def test_its_files_and_its_make_targets_are_there(workflow: dict[str, Any]) -> None:
    for step in workflow["jobs"]["scenarios"]["steps"]:
        script = step.get("run", "")
        for name in re.findall(r"\b(?:scenarios|docs)/[\w./*-]+", script):
            assert list(ROOT.glob(name)), name
        for target in re.findall(r"\bmake ([\w-]+)", script):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_it_runs_on_pull_requests_and_by_the_clock_and_ends_in_time(workflow: dict[str, Any]) -> None:
    triggers = workflow["on"]
    assert {"pull_request", "schedule"} <= triggers.keys()
    assert all(len(entry["cron"].split()) == 5 for entry in triggers["schedule"])
    job = workflow["jobs"]["scenarios"]
    assert job["runs-on"] == "ubuntu-24.04"
    assert 10 <= job["timeout-minutes"] <= 60


def test_evidence_is_kept_whatever_the_verdict(workflow: dict[str, Any]) -> None:
    steps = workflow["jobs"]["scenarios"]["steps"]
    (upload,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "always()"
    run = next(step["run"] for step in steps if "mrc-testbed run" in step.get("run", ""))
    (words,) = commands(run)
    given = [words[words.index(option) + 1] for option in ("--junit", "--json", "--out")]
    paths = upload["with"]["path"].split()
    assert {path.rstrip("/") for path in paths if not path.startswith("!")} == set(given)
    assert {path for path in paths if path.startswith("!")} == {"!results/latest", "!results/latest/**"}, "a link"
    assert "--retry-inconclusive" in words


def test_nothing_in_it_hides_an_exit_status(workflow: dict[str, Any]) -> None:
    for step in workflow["jobs"]["scenarios"]["steps"]:
        assert "continue-on-error" not in step
        assert not re.search(r"\|\| *(true|:)|mrc-testbed[^\n]*\|", step.get("run", ""))


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_a_workflow_is_what_github_takes(path: Path) -> None:
    """By the schema that editors check workflows with."""
    schema = "vendor.github-actions" if path == ACTION else "vendor.github-workflows"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_of_workflows_has_nothing_to_say() -> None:
    """As `make lint` calls it: code that an input could bring in, credentials left behind, actions without a pin."""
    command = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--quiet", ".github/workflows", "action"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_release_is_checked_before_it_is_published() -> None:
    loaded = YAML(typ="safe").load(RELEASE.read_text())
    jobs = loaded["jobs"]
    assert loaded["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert set(jobs["publish"]["needs"]) == {"build", "use"} == jobs.keys() - {"publish", "tell"}
    assert "PUBLISHED" in jobs["tell"]["steps"][0]["run"], "what needs the account of the maintainer"
    assert "github.ref_type == 'tag'" in jobs["publish"]["if"]
    assert {"ubuntu", "macos", "windows"} == {
        name.split("-")[0] for name in jobs["use"]["strategy"]["matrix"]["system"]
    }
    scripts = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    assert "twine check --strict dist/*" in scripts
    assert 'tools/check_wheel.py dist --url "$URL" ${TAG:+--tag "$TAG"}' in scripts
    assert "mrc-testbed run quickstart --virtual" in scripts


def test_jobs_of_the_sweep_hand_on_what_the_next_ones_read() -> None:
    jobs = YAML(typ="safe").load(SWEEP.read_text())["jobs"]
    assert jobs["cell"]["strategy"]["matrix"] == "${{ fromJSON(needs.plan.outputs.matrix) }}"
    assert jobs["cell"]["strategy"]["fail-fast"] is False
    uploads = [step["with"] for step in jobs["cell"]["steps"] if "upload" in step.get("uses", "")]
    assert "big/cells/" in uploads[0]["path"].split()
    assert [step["with"]["pattern"] for step in jobs["gather"]["steps"] if "pattern" in step.get("with", {})] == [
        "cells-*"
    ]
