"""Scenario mistakes for people: place, message, and the source line with a caret."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mrc_testbed.testbed.errors import Problem, ScenarioError
from mrc_testbed.testbed.inputs import input_bytes
from mrc_testbed.testbed.scenario.text.yaml_text import MAX_BYTES

WIDTH = 110
"""Longer source lines are cut around the caret."""


def render_problems(error: ScenarioError) -> str:
    """Every problem with its source line below, if the file can still be read."""
    count = len(error.problems)
    blocks = [_block(problem) for problem in error.problems]
    if count > 1:
        blocks.append(f"{count} mistakes")
    return "\n".join(blocks)


def _block(problem: Problem) -> str:
    lines = _lines(problem.file) if problem.line else ()
    if not 0 < problem.line <= len(lines):
        return str(problem)
    text, caret = _cut(lines[problem.line - 1], problem.column - 1)
    margin = f"{problem.line:>5} | "
    return f"{problem}\n{margin}{text}\n{' ' * (len(margin) - 2)}| {' ' * caret}^"


def _cut(line: str, column: int) -> tuple[str, int]:
    line = line.replace("\t", " ")
    start = max(0, column - WIDTH // 2) if len(line) > WIDTH else 0
    return line[start : start + WIDTH], max(0, min(column, len(line)) - start)


@cache
def _lines(file: str) -> tuple[str, ...]:
    try:
        return tuple(input_bytes(Path(file), MAX_BYTES).decode("utf-8-sig").splitlines())
    except (OSError, ValueError):
        return ()
