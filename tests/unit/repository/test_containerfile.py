"""The Containerfile: what `make test-distros ARGS=--containerfile` reads in it and does with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.repository.developer_tools import loaded

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8")
SMALL = """\
# a comment
FROM docker.io/library/debian:trixie-slim AS one
RUN a \\
  && b
COPY . /x
WORKDIR /x
ENV A=1=2
RUN c
ENTRYPOINT ["d"]
CMD ["e", "f"]
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("containerfile.py")


def carried_out(tool: ModuleType, text: str, failing: str = "") -> tuple[str | None, list[Any]]:
    """What a stage came to, and what was done."""
    done: list[Any] = []

    def run(words: list[str], place: str, variables: dict[str, str]) -> int:
        done.append((" ".join(words), place, dict(variables)))
        return int(bool(failing) and failing in words)

    (stage,) = tool.stages(text)
    return tool.carry_out(stage, done.append, run), done


def test_lines_are_carried_out_in_order_and_then_what_the_image_starts(tool: ModuleType) -> None:
    told, done = carried_out(tool, SMALL)
    assert told is None
    assert done == [
        ("sh -c a && b", "/", {}),
        "/x",
        ("sh -c c", "/x", {"A": "1=2"}),
        ("d e f", "/x", {"A": "1=2"}),
    ]


@pytest.mark.parametrize(("failing", "told", "steps"), [("a && b", "RUN a && b", 1), ("f", "started: d e f", 4)])
def test_the_first_line_that_fails_is_told(tool: ModuleType, failing: str, told: str, steps: int) -> None:
    found, done = carried_out(tool, SMALL, failing)
    assert (found, len(done)) == (told, steps)


@pytest.mark.parametrize("line", ["ADD x /y", "USER me", "COPY a /b"])
def test_what_it_does_not_know_is_no_pass(tool: ModuleType, line: str) -> None:
    with pytest.raises(ValueError, match="not an instruction"):
        carried_out(tool, SMALL + line)


def test_stages_of_the_containerfile_are_slim_debians(tool: ModuleType) -> None:
    found = tool.stages(TEXT)
    assert [(stage.name, stage.suite) for stage in found] == [("virtual", "trixie"), ("lab", "trixie")]
    for stage in found:
        tool.carry_out(stage, lambda place: None, lambda words, place, variables: 0)
    with pytest.raises(ValueError, match="not a slim Debian"):
        _ = tool.Stage("alpine:3", "x").suite


def test_the_dev_container_builds_a_stage_that_is_there(tool: ModuleType) -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    told = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert (ROOT / ".devcontainer" / told["build"]["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert told["build"]["target"] in {stage.name for stage in tool.stages(TEXT)}
    assert told["postCreateCommand"] == "make setup"


def test_one_list_says_what_a_build_leaves_out() -> None:
    assert (ROOT / ".dockerignore").resolve() == ROOT / ".containerignore"
    assert {".git", ".venv"} <= set((ROOT / ".containerignore").read_text(encoding="utf-8").splitlines())
