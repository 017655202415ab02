"""Hooks of pre-commit run what `make lint` runs, and look at the files that they are for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mrc_testbed.testbed.scenario.load.shipped import FOLDER, SCHEMA_FILE, shipped

ROOT = Path(__file__).parents[3]
CONFIG = YAML(typ="safe").load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS: dict[str, dict[str, Any]] = {hook["id"]: hook for repo in CONFIG["repos"] for hook in repo["hooks"]}


def looks_at(hook: str, path: Path) -> bool:
    """`files` is searched in the path from the top of the repository."""
    return bool(re.search(HOOKS[hook]["files"], path.relative_to(ROOT).as_posix()))


def test_the_file_is_what_prek_takes() -> None:
    command = [str(Path(sys.executable).with_name("prek")), "validate-config", str(ROOT / ".pre-commit-config.yaml")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_nothing_is_downloaded() -> None:
    assert [repo["repo"] for repo in CONFIG["repos"]] == ["local"]
    assert {hook["language"] for hook in HOOKS.values()} == {"system"}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=list(HOOKS))
def test_each_hook_calls_what_set_up_puts_there(hook: dict[str, Any]) -> None:
    program, *words = hook["entry"].split()
    assert program.startswith(".venv/bin/")
    assert Path(sys.executable).with_name(Path(program).name).exists(), program
    assert all((ROOT / word).exists() for word in words if "/" in word)


def test_lint_runs_the_same_tools() -> None:
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    for name in ("ruff", "ruff-format", "codespell"):
        assert " ".join(HOOKS[name]["entry"].split()[:2]).removesuffix(" --force-exclude") in lint, name


def test_scenarios_are_looked_at_but_no_lesson_that_is_begun_wrong_on_purpose() -> None:
    assert all(looks_at("scenarios", one.path) for one in shipped())
    assert looks_at("scenarios", ROOT / "docs/examples/evening.yaml")
    lesson = FOLDER / "lessons/03-spray"
    assert not any(looks_at("scenarios", path) for path in lesson.glob("*.yaml"))


def test_the_schema_is_written_again_where_the_language_changes() -> None:
    for path in (SCHEMA_FILE, ROOT / "testbed/scenario/model/fabric.py", ROOT / "testbed/workloads/collective.py"):
        assert looks_at("schema", path)


def test_a_word_that_is_spelt_wrong_is_found(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("A Clos fabric teh reader knows.\n")  # codespell:ignore
    command = [sys.executable, "-m", "codespell_lib", "--toml", str(ROOT / "pyproject.toml"), str(tmp_path / "x.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout.splitlines() == [f"{tmp_path / 'x.md'}:1: teh ==> the"]  # codespell:ignore
